#include "server/report/figure/render.h"

#include <cairo-pdf.h>
#include <cairo.h>
#include <fontconfig/fontconfig.h>
#include <librsvg/rsvg.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clean.h"
#include "base/status_macros.h"

namespace ablate::figure {
namespace {

constexpr double kPointsAnInch = 72, kPixelsAnInch = 192;

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};

using Handle = std::unique_ptr<RsvgHandle, Free<g_object_unref>>;
using Surface = std::unique_ptr<cairo_surface_t, Free<cairo_surface_destroy>>;
using Context = std::unique_ptr<cairo_t, Free<cairo_destroy>>;

// Cairo's write function: appends to the string `closure`.
cairo_status_t Append(void* closure, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

absl::Status CairoError(cairo_status_t status) {
  return absl::InternalError(
      absl::StrCat("the picture can't be drawn: ", cairo_status_to_string(status)));
}

absl::Status RsvgError(GError* error) {
  const std::unique_ptr<GError, Free<g_error_free>> owned(error);
  return absl::InternalError(absl::StrCat("the picture can't be drawn: ",
                                          owned == nullptr ? "no reason given" : owned->message));
}

// Checks for a font: without any, all text would be left out silently.
absl::Status CheckFonts() {
  const FcFontSet* fonts = FcConfigGetFonts(nullptr, FcSetSystem);
  if (fonts != nullptr && fonts->nfont > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "format: pdf and png need a font, and the server's machine has none. Install the Debian "
      "package fonts-liberation there and restart the server, or use svg");
}

// Draws the figure over the whole of `surface`, whose width and height are in its own units.
absl::Status Draw(const Figure& figure, double width, double height, cairo_surface_t* surface) {
  const std::string svg = Svg(figure);
  GError* error = nullptr;
  const Handle handle(
      rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error));
  if (handle == nullptr) return RsvgError(error);
  const Context context(cairo_create(surface));
  // The last row and column of pixels may be covered only partly.
  cairo_set_source_rgb(context.get(), 1, 1, 1);
  cairo_paint(context.get());
  const RsvgRectangle viewport = {0, 0, width, height};
  if (!rsvg_handle_render_document(handle.get(), context.get(), &viewport, &error)) {
    return RsvgError(error);
  }
  const cairo_status_t drawn = cairo_status(context.get());
  return drawn == CAIRO_STATUS_SUCCESS ? absl::OkStatus() : CairoError(drawn);
}

absl::StatusOr<std::string> Pdf(const Figure& figure) {
  const double width = figure.width * kPointsAnInch, height = figure.height * kPointsAnInch;
  std::string pdf;
  const Surface surface(cairo_pdf_surface_create_for_stream(Append, &pdf, width, height));
  // Fixed, so that the bytes are the same every time.
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                 "2000-01-01T00:00:00Z");
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE,
                                 text::CleanText(figure.title).c_str());
  RETURN_IF_ERROR(Draw(figure, width, height, surface.get()));
  cairo_surface_finish(surface.get());
  const cairo_status_t finished = cairo_surface_status(surface.get());
  if (finished != CAIRO_STATUS_SUCCESS) return CairoError(finished);
  return pdf;
}

absl::StatusOr<std::string> Png(const Figure& figure) {
  const auto pixels = [](double inches) {
    return static_cast<int>(std::lround(inches * kPixelsAnInch));
  };
  const Surface surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, pixels(figure.width), pixels(figure.height)));
  const double width = figure.width * kPixelsAnInch, height = figure.height * kPixelsAnInch;
  RETURN_IF_ERROR(Draw(figure, width, height, surface.get()));
  std::string png;
  const cairo_status_t written = cairo_surface_write_to_png_stream(surface.get(), Append, &png);
  if (written != CAIRO_STATUS_SUCCESS) return CairoError(written);
  return png;
}

}  // namespace

absl::string_view MediaType(Format format) {
  static constexpr std::array<absl::string_view, 3> kTypes = {"image/svg+xml", "application/pdf",
                                                              "image/png"};
  return kTypes[static_cast<size_t>(format)];
}

absl::StatusOr<std::string> Render(const Figure& figure, Format format) {
  if (format == Format::kSvg) return Svg(figure);
  RETURN_IF_ERROR(CheckFonts());
  return format == Format::kPdf ? Pdf(figure) : Png(figure);
}

}  // namespace ablate::figure
