// Tests the grammar of filters: trees, columns of mistakes, and hostile texts.
#include "server/filter/filter.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::filter {
namespace {

std::string Show(const Name& name) {
  return name.function.empty() ? name.text : absl::StrCat(name.function, "(", name.text, ")");
}

// Returns the tree as a text with all parentheses.
std::string Show(const Expression& expression) {
  if (expression.kind == Expression::Kind::kComparison) {
    const Comparison& comparison = expression.comparison;
    const char* quote = comparison.quoted ? "'" : "";
    return absl::StrCat(Show(comparison.name), " ", NameOf(comparison.op), " ", quote,
                        comparison.value, quote);
  }
  if (expression.kind == Expression::Kind::kNot) {
    return absl::StrCat("!(", Show(expression.operands[0]), ")");
  }
  std::string text;
  for (const Expression& operand : expression.operands) {
    if (!text.empty()) {
      absl::StrAppend(&text, expression.kind == Expression::Kind::kAnd ? " & " : " | ");
    }
    absl::StrAppend(&text, "(", Show(operand), ")");
  }
  return text;
}

std::string Tree(const std::string& text) {
  std::optional<Expression> filter;
  Mistake mistake;
  if (!Parse(text, &filter, &mistake)) {
    return absl::StrCat("column ", mistake.column, ": ", mistake.complaint, "; expected ",
                        mistake.expected);
  }
  return filter.has_value() ? Show(*filter) : "everything";
}

TEST(FilterTest, BuildsATree) {
  EXPECT_EQ(Tree(""), "everything");
  EXPECT_EQ(Tree(" \t\n"), "everything");
  EXPECT_EQ(Tree("a=1"), "a = 1");
  EXPECT_EQ(Tree("model.norm.placement = pre AND eval/loss<2.4"),
            "(model.norm.placement = pre) & (eval/loss < 2.4)");
  EXPECT_EQ(Tree("a = 1 OR b != 2 OR c >= 3"), "(a = 1) | (b != 2) | (c >= 3)");
  EXPECT_EQ(Tree("a = 1 AND (b <= 2 OR NOT c > 3)"), "(a = 1) & ((b <= 2) | (!(c > 3)))");
  EXPECT_EQ(Tree("not (a:x and b:*)"), "!((a : x) & (b : *))");
  EXPECT_EQ(Tree("NOT NOT a = 1"), "!(!(a = 1))");
  EXPECT_EQ(Tree("((a = 1))"), "a = 1");
}

TEST(FilterTest, ReadsNamesAndValues) {
  EXPECT_EQ(Tree("min(eval/loss) < 2"), "min(eval/loss) < 2");
  EXPECT_EQ(Tree("min( \"odd (key)\" )<-1e-3"), "min(odd (key)) < -1e-3");
  EXPECT_EQ(Tree("robustness/fgsm@0.1/increase > 1"), "robustness/fgsm@0.1/increase > 1");
  EXPECT_EQ(Tree("created > 2026-11-26T10:00:00+01:00"), "created > 2026-11-26T10:00:00+01:00");
  EXPECT_EQ(Tree("created > -2d"), "created > -2d");
  EXPECT_EQ(Tree("a = 'it is'"), "a = 'it is'");
  EXPECT_EQ(Tree("a = \"\\\"\\\\x\\n\""), "a = '\"\\xn'");
  EXPECT_EQ(Tree("a = ''"), "a = ''");
  EXPECT_EQ(Tree("a = and"), "a = and") << "a keyword is a value";
  EXPECT_EQ(Tree("größe = ü"), "größe = ü");
}

TEST(FilterTest, RefusesToGuessWhatMixedOperatorsMean) {
  EXPECT_EQ(Tree("a = 1 AND b = 2 OR c = 3"),
            "column 17: AND and OR are mixed; expected parentheses, as in a = 1 AND (b = 2 OR c = "
            "3)");
  EXPECT_EQ(Tree("(a = 1 AND b = 2) OR c = 3"), "((a = 1) & (b = 2)) | (c = 3)");
}

struct BadText {
  std::string text;
  std::string mistake;  // the beginning
};

TEST(FilterTest, SaysWhereAMistakeIsAndWhatIsExpected) {
  const std::string deep(40, '(');
  const std::vector<BadText> texts = {
      {"a", "column 2: the text ends too early; expected one of = != < <= > >= :"},
      {"a =", "column 4: the text ends too early; expected a value"},
      {"= 1", "column 1: '=' isn't a name; expected a name, such as"},
      {"a == 1", "column 4: '=' isn't a value"},
      {"a = = 1", "column 5: '=' isn't a value"},
      {"a <> 1", "column 4: '>' isn't a value"},
      {"a ! 1", "column 3: '!' isn't an operator"},
      {"a =! 1", "column 4: '!' isn't a value"},
      {"a ~ 1", "column 3: '~' isn't an operator"},
      {"a in (1, 2)", "column 3: 'in' isn't an operator"},
      {"a = 1 b = 2", "column 7: 'b' is too much; expected AND, OR or the end"},
      {"a = 1 && b = 2", "column 7: '&&' is too much; expected AND, OR or the end"},
      {"a = 1 || b = 2", "column 7: '||' is too much"},
      {"a = 1, b = 2", "column 6: ',' is too much"},
      {"a = 1 AND", "column 10: the text ends too early; expected a name"},
      {"a = 1 OR OR b = 1", "column 13: 'b' isn't an operator"},
      {"AND a = 1", "column 5: 'a' isn't an operator"},
      {"NOT", "column 4: the text ends too early; expected a name"},
      {"NOT = 1", "column 5: '=' isn't a name"},
      {"(", "column 2: the text ends too early"},
      {")", "column 1: ')' isn't a name"},
      {"()", "column 2: ')' isn't a name"},
      {"(a = 1", "column 7: the text ends too early; expected AND, OR or a closing parenthesis"},
      {"a = 1)", "column 6: ')' is too much; expected AND, OR or the end"},
      {"a = (1)", "column 5: '(' isn't a value"},
      {"a = (1 OR 2)", "column 5: '(' isn't a value"},
      {"a = \"x", "column 5: the string has no end; expected a closing quote"},
      {"a = 'x\"", "column 5: the string has no end"},
      {"a = \"x\\\"", "column 5: the string has no end"},
      {"\"a = 1", "column 1: the string has no end"},
      {"\"\" = 1", "column 1: the name is empty"},
      {"min(eval/loss < 2", "column 15: '<' is too much; expected a closing parenthesis"},
      {"min() < 2", "column 5: ')' isn't a name"},
      {"min(max(a)) < 2", "column 8: '(' is too much; expected a closing parenthesis"},
      {"(a) < 2", "column 3: ')' isn't an operator"},
      {"1 < a < 2", "column 7: '<' is too much"},
      {"ö = 1 x", "column 7: 'x' is too much"},
      {"a\n=\n1 x", "column 7: 'x' is too much"},
      {"a = 1 \x01", "column 7: '\\x01' is too much"},
      {"a = 1 \xff\xfe", "column 7: '\xff\xfe' is too much"},
      {"'; DROP TABLE runs; --", "column 1: the string has no end"},
      {"a = 1 UNION SELECT * FROM users", "column 7: 'UNION' is too much"},
      {deep + "a = 1", "column 33: nested too deeply; expected at most 32 levels"},
      {absl::StrCat(std::string(32, '('), "a = 1"), "column 38: the text ends too early"},
      {absl::StrCat("a = ", std::string(5000, 'x')), "column 1: the text has 5004 bytes"}};
  for (const BadText& bad : texts) {
    EXPECT_EQ(Tree(bad.text).substr(0, bad.mistake.size()), bad.mistake) << bad.text;
  }
  std::string nots, many = "a = 1";
  for (int i = 0; i < 100; ++i) nots += "NOT ", many += " OR a = 1";
  EXPECT_THAT(Tree(nots + "a = 1"), testing::HasSubstr("nested too deeply"));
  EXPECT_THAT(Tree(many), testing::HasSubstr("too many comparisons; expected at most 64"));
}

std::string OrderOf(const std::string& text) {
  Order order;
  Mistake mistake;
  if (!ParseOrder(text, &order, &mistake)) {
    return absl::StrCat("column ", mistake.column, ": ", mistake.complaint);
  }
  constexpr const char* kDirections[] = {"up", "down", "best"};
  return absl::StrCat(Show(order.name), " ", kDirections[static_cast<int>(order.direction)]);
}

TEST(FilterTest, ReadsAnOrder) {
  EXPECT_EQ(OrderOf("eval/loss"), "eval/loss up");
  EXPECT_EQ(OrderOf("-eval/loss"), "eval/loss down");
  EXPECT_EQ(OrderOf("eval/loss desc"), "eval/loss down");
  EXPECT_EQ(OrderOf("eval/loss ASC"), "eval/loss up");
  EXPECT_EQ(OrderOf("min(eval/loss) best"), "min(eval/loss) best");
  EXPECT_EQ(OrderOf("-min(eval/loss)"), "min(eval/loss) down");
  EXPECT_EQ(OrderOf(""), "column 1: the text ends too early");
  EXPECT_EQ(OrderOf("-"), "column 1: '-' is alone");
  EXPECT_EQ(OrderOf("-a desc"), "column 4: 'desc' is too much");
  EXPECT_EQ(OrderOf("a up"), "column 3: 'up' isn't a direction");
  EXPECT_EQ(OrderOf("a desc, b"), "column 7: ',' is too much");
  EXPECT_EQ(OrderOf("a, b"), "column 2: ',' isn't a direction");
}

TEST(FilterTest, ReadsAName) {
  Name name;
  Mistake mistake;
  ASSERT_TRUE(ParseName(" max(a/b) ", &name, &mistake));
  EXPECT_EQ(Show(name), "max(a/b)");
  EXPECT_FALSE(ParseName("a b", &name, &mistake));
  EXPECT_EQ(mistake.column, 3u);
  EXPECT_FALSE(ParseName("", &name, &mistake));
}

}  // namespace
}  // namespace ablate::filter
