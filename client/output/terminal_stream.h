// Filters text for people, so that it can't control a terminal, now or when a file of it is shown.
#ifndef ABLATE_CLIENT_OUTPUT_TERMINAL_STREAM_H_
#define ABLATE_CLIENT_OUTPUT_TERMINAL_STREAM_H_

#include <ostream>
#include <streambuf>

namespace ablate::client {

// A sequence of the program's own, such as a colour: a TerminalStream passes it on as it is.
struct TerminalControl {
  const char* sequence;
};
std::ostream& operator<<(std::ostream& out, const TerminalControl& control);

// Returns the stream below a TerminalStream; any other stream itself.
std::ostream& Unfiltered(std::ostream& out);

// Writes to another stream. Control characters other than line feeds, bidirectional marks and bytes
// that aren't UTF-8 are shown as by Printable; a CR before a line feed is left out. Characters must
// be written whole. Fails once the other stream does. Not thread-safe.
class TerminalStream : public std::ostream {
 public:
  // `terminal` must outlive it.
  explicit TerminalStream(std::ostream* terminal);

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(std::ostream* terminal) : terminal_(terminal) {}
    std::ostream* terminal() { return terminal_; }

   protected:
    int overflow(int c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    std::ostream* const terminal_;
  };
  friend std::ostream& Unfiltered(std::ostream& out);

  Buffer buffer_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_TERMINAL_STREAM_H_
