#include "physics/json_reader.h"

#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

namespace lcp::physics {
namespace {

// The length of the character of UTF-8 that begins a text that is not empty, or 0 where none does.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return 0;
  }
  // Such bytes would be a character that has a shorter form, a surrogate, or beyond U+10FFFF.
  const unsigned second = byte(1);
  const bool is_outside = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                          (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return is_outside ? 0 : length;
}

// A character up to U+FFFF that is no surrogate.
std::string utf8(unsigned code) {
  const auto last_bits = [&](unsigned shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), last_bits(0)};
  return {static_cast<char>(0xE0 | code >> 12), last_bits(6), last_bits(0)};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string JsonReader::string() {
  if (!take_if('"')) expected("a string");
  std::string value;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\') {
      ++at_;
      value += escaped();
      continue;
    }
    const std::size_t length = utf8_length(text_.substr(at_));
    if (length == 0) fail("a string must be UTF-8");
    if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("a string must end on its line");
    value += text_.substr(at_, length);
    at_ += length;
  }
  if (at_ == text_.size()) expected("the end of a string");
  ++at_;
  return value;
}

double JsonReader::number() {
  const std::string_view found = word();
  if (found == "Infinity") return std::numeric_limits<double>::infinity();
  if (found == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (found == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return parsed<double>(found, "a number");
}

std::int64_t JsonReader::integer() { return parsed<std::int64_t>(word(), "an integer"); }

bool JsonReader::boolean() {
  const std::string_view found = word();
  if (found != "true" && found != "false") fail("expected true or false; got ", found);
  return found == "true";
}

void JsonReader::end() {
  skip_space();
  if (at_ < text_.size()) expected("the end of the file");
}

void JsonReader::skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

void JsonReader::take(char c) {
  if (!take_if(c)) expected({&c, 1});
}

bool JsonReader::take_if(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

std::string_view JsonReader::word() {
  skip_space();
  const std::size_t begin = at_;
  const auto is_part = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.';
  };
  while (at_ < text_.size() && is_part(text_[at_])) ++at_;
  if (at_ == begin) expected("a number or a word");
  return text_.substr(begin, at_ - begin);
}

template <class T>
T JsonReader::parsed(std::string_view word, const char* what) const {
  T value = {};
  const std::size_t sign = word.starts_with('-') ? 1 : 0;
  const bool begins = word.size() > sign && is_digit(word[sign]);  // not so inf and nan, which from_chars reads
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (!begins || rest != word.data() + word.size() || error != std::errc()) fail("expected ", what, "; got ", word);
  return value;
}

std::string JsonReader::escaped() {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (at_ < text_.size() && text_[at_] != 'u') {
    const std::size_t k = kLetters.find(text_[at_]);
    if (k == std::string_view::npos) expected("an escape of JSON");
    ++at_;
    return {kMeanings[k]};
  }
  const std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
  unsigned code = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < 4 || rest != digits.data() + 4 || error != std::errc()) fail("expected u and four digits");
  if (code >= 0xD800 && code < 0xE000) fail("characters beyond U+FFFF must be UTF-8, without escapes");
  at_ += 5;
  return utf8(code);
}

void JsonReader::expected(std::string_view what) const {
  if (at_ == text_.size()) fail("expected ", what, "; the file ends");
  const std::size_t length = utf8_length(text_.substr(at_));
  fail("expected ", what, "; got ", length == 0 ? "a byte that is not UTF-8" : text_.substr(at_, length));
}

}  // namespace lcp::physics
