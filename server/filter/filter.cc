#include "server/filter/filter.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/filter/scanner.h"

namespace ablate::filter {
namespace {

constexpr absl::string_view kNameExpected = "a name, such as model.layers, seed or eval/loss";
constexpr absl::string_view kOperatorExpected = "one of = != < <= > >= :";

// A recursive descent over one text: a function per rule of the grammar, each of which returns
// false after it has set the mistake. The recursion is as deep as the text's nesting, which is
// limited.
class Parser {
 public:
  Parser(absl::string_view text, Mistake* mistake) : scan_(text), mistake_(mistake) {}

  bool Filter(std::optional<Expression>* filter) {
    if (scan_.AtEnd()) return true;
    return ParseExpression(&filter->emplace()) && End("AND, OR or the end");
  }

  bool WholeOrder(Order* order) {
    if (!ParseName(&order->name)) return false;
    Name& name = order->name;
    std::string& first = name.function.empty() ? name.text : name.function;
    if (absl::StartsWith(first, "-")) {
      first.erase(0, 1);
      order->direction = Order::Direction::kDescending;
      if (first.empty()) return Fail({name.column, "'-' is alone", std::string(kNameExpected)});
      return End("the end, because '-' is a direction already");
    }
    if (scan_.TakeKeyword("desc")) {
      order->direction = Order::Direction::kDescending;
    } else if (scan_.TakeKeyword("best")) {
      order->direction = Order::Direction::kBest;
    } else if (!scan_.TakeKeyword("asc") && !scan_.AtEnd()) {
      return Fail(scan_.Unexpected("isn't a direction", "asc, desc, best or the end"));
    }
    return End("the end; a list has one key");
  }

  bool WholeName(Name* name) { return ParseName(name) && End("the end"); }

 private:
  bool Fail(Mistake mistake) {
    *mistake_ = std::move(mistake);
    return false;
  }

  bool End(absl::string_view expected) {
    return scan_.AtEnd() || Fail(scan_.Unexpected("is too much", expected));
  }

  bool ParseExpression(Expression* expression) {
    if (!ParseTerm(&expression->operands.emplace_back())) return false;
    using Kind = Expression::Kind;
    std::optional<Kind> joined;
    while (true) {
      const size_t column = scan_.Column();
      const bool is_and = scan_.TakeKeyword("AND");
      if (!is_and && !scan_.TakeKeyword("OR")) break;
      const Kind kind = is_and ? Kind::kAnd : Kind::kOr;
      if (joined.has_value() && joined != kind) {
        return Fail(
            {column, "AND and OR are mixed", "parentheses, as in a = 1 AND (b = 2 OR c = 3)"});
      }
      joined = expression->kind = kind;
      if (!ParseTerm(&expression->operands.emplace_back())) return false;
    }
    if (joined.has_value()) return true;
    Expression only = std::move(expression->operands.front());
    *expression = std::move(only);
    return true;
  }

  bool ParseTerm(Expression* term) {
    const size_t column = scan_.Column();
    const bool negates = scan_.TakeKeyword("NOT");
    if (!negates && !scan_.TakeCharacter('(')) return ParseComparison(term);
    if (++nesting_ > kMaxNesting) {
      return Fail({column, "nested too deeply", absl::StrCat("at most ", kMaxNesting, " levels")});
    }
    if (negates) {
      term->kind = Expression::Kind::kNot;
      if (!ParseTerm(&term->operands.emplace_back())) return false;
    } else {
      if (!ParseExpression(term)) return false;
      if (!scan_.TakeCharacter(')')) {
        return Fail(scan_.Unexpected("is too much", "AND, OR or a closing parenthesis"));
      }
    }
    --nesting_;
    return true;
  }

  bool ParseComparison(Expression* term) {
    term->kind = Expression::Kind::kComparison;
    Comparison& comparison = term->comparison;
    const size_t column = scan_.Column();
    if (++comparisons_ > kMaxComparisons) {
      return Fail({column, "too many comparisons", absl::StrCat("at most ", kMaxComparisons)});
    }
    if (!ParseName(&comparison.name)) return false;
    comparison.op_column = scan_.Column();
    const std::optional<Operator> op = scan_.TakeOperator();
    if (!op.has_value()) return Fail(scan_.Unexpected("isn't an operator", kOperatorExpected));
    comparison.op = *op;
    std::optional<Token> value = TakeText(Scanner::Place::kValue, "isn't a value",
                                          "a value; texts with spaces or ()=!<>,' in quotes");
    if (!value.has_value()) return false;
    comparison.value = std::move(value->text);
    comparison.quoted = value->quoted;
    comparison.value_column = value->column;
    return true;
  }

  bool ParseName(Name* name) {
    std::optional<Token> token = TakeText(Scanner::Place::kName, "isn't a name", kNameExpected);
    if (!token.has_value()) return false;
    if (token->text.empty())
      return Fail({token->column, "the name is empty", std::string(kNameExpected)});
    name->column = token->column;
    if (token->quoted || !scan_.TakeCharacter('(')) {
      name->text = std::move(token->text);
      return true;
    }
    name->function = std::move(token->text);
    token = TakeText(Scanner::Place::kName, "isn't a name", kNameExpected);
    if (!token.has_value()) return false;
    name->text = std::move(token->text);
    return scan_.TakeCharacter(')') ||
           Fail(scan_.Unexpected("is too much", "a closing parenthesis"));
  }

  std::optional<Token> TakeText(Scanner::Place place, absl::string_view isnt,
                                absl::string_view expected) {
    const size_t column = scan_.Column();
    std::optional<Token> token = scan_.TakeText(place);
    if (token.has_value()) return token;
    if (scan_.open_string()) {
      Fail({column, "the string has no end", "a closing quote"});
    } else {
      Fail(scan_.Unexpected(isnt, expected));
    }
    return std::nullopt;
  }

  Scanner scan_;
  Mistake* const mistake_;
  size_t comparisons_ = 0;
  int nesting_ = 0;
};

bool CheckSize(absl::string_view text, Mistake* mistake) {
  if (text.size() <= kMaxBytes) return true;
  *mistake = {1, absl::StrCat("the text has ", text.size(), " bytes"),
              absl::StrCat("at most ", kMaxBytes)};
  return false;
}

}  // namespace

bool Parse(absl::string_view text, std::optional<Expression>* filter, Mistake* mistake) {
  filter->reset();
  return CheckSize(text, mistake) && Parser(text, mistake).Filter(filter);
}

bool ParseOrder(absl::string_view text, Order* order, Mistake* mistake) {
  *order = {};
  return CheckSize(text, mistake) && Parser(text, mistake).WholeOrder(order);
}

bool ParseName(absl::string_view text, Name* name, Mistake* mistake) {
  *name = {};
  return CheckSize(text, mistake) && Parser(text, mistake).WholeName(name);
}

}  // namespace ablate::filter
