#include "run/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace lcp::training::text_test {

TEST(TextTest, NumbersHaveThreeDigitsAndNoNegativeZero) {
  EXPECT_EQ(short_number(1234.5), "1.23e+03");
  EXPECT_EQ(short_number(-0.5), "-0.5");
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(std::numeric_limits<double>::infinity()), "inf");
}

TEST(TextTest, NamesAreListedAsASentenceDoes) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"a"}), "a");
  EXPECT_EQ(listed({"a", "b"}), "a or b");
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b or c");
}

TEST(TextTest, OneOfSaysWhatAValueMustBe) {
  const auto allowed = one_of({"a", "b"});
  EXPECT_EQ(allowed("a"), "");
  EXPECT_EQ(allowed("b"), "");
  EXPECT_EQ(allowed("c"), "a or b");
  EXPECT_EQ(allowed(""), "a or b");
}

TEST(TextTest, PaddedTextIsFollowedByABlank) {
  EXPECT_EQ(padded("ab", 4), "ab  ");
  EXPECT_EQ(padded("abcd", 4), "abcd ");
}

TEST(TextTest, CommandsCanBePastedIntoAShell) {
  EXPECT_EQ(shell_command({"bin/train_direct", "--out", "runs/a", "--resume"}),
            "bin/train_direct --out runs/a --resume");
  EXPECT_EQ(shell_command({"a b", "", "it's", "$x"}), "'a b' '' 'it'\\''s' '$x'");
  EXPECT_TRUE(resume_command("my runs").ends_with("training_tests --out 'my runs' --resume"));
}

TEST(TextTest, TablesAreMarkdown) {
  EXPECT_EQ(table_head({"a", "b"}), "| a | b |\n| --- | --- |\n");
  EXPECT_EQ(table_row({"1", ""}), "| 1 |  |\n");
}

}  // namespace lcp::training::text_test
