// Texts of JSON, read value by value. Numbers may also be Infinity, -Infinity and NaN, as Python writes them.
#pragma once

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lcp::physics {

/// The caller says which type it expects next. Another one, or a text that is no JSON, throws c10::Error with the path
/// of the file and the line. Nothing is read recursively.
class JsonReader {
 public:
  /// The text must be alive as long as this reader.
  JsonReader(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

  /// read(key) reads the value of each key. The object must have each of these keys once, in any order, and no other.
  template <class Read>
  void object(std::initializer_list<std::string_view> keys, const Read& read) {
    object(std::vector<std::string_view>(keys), read);
  }
  template <class Read>
  void object(std::vector<std::string_view> missing, const Read& read) {
    list('{', '}', [&] {
      const std::string key = string();
      const auto found = std::find(missing.begin(), missing.end(), key);
      if (found == missing.end()) fail("unexpected ", key, "; what may follow is ", c10::Join(", ", missing));
      missing.erase(found);
      take(':');
      read(key);
    });
    if (!missing.empty()) fail(missing.front(), " is missing");
  }

  /// read() reads each element.
  template <class Read>
  void array(const Read& read) {
    list('[', ']', read);
  }

  std::string string();
  double number();
  std::int64_t integer();
  bool boolean();

  /// Throws where anything follows.
  void end();

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    TORCH_CHECK(false, path_, " line ", line, ": ", parts...);
  }

 private:
  template <class Read>
  void list(char begin, char end, const Read& read) {
    take(begin);
    if (take_if(end)) return;
    do {
      read();
    } while (take_if(','));
    take(end);
  }
  void skip_space();
  void take(char c);
  bool take_if(char c);
  /// The letters, digits and signs of a number, or of a word without quotes.
  std::string_view word();
  template <class T>
  T parsed(std::string_view word, const char* what) const;
  std::string escaped();
  [[noreturn]] void expected(std::string_view what) const;

  std::string_view text_;
  std::string path_;
  std::size_t at_ = 0;
};

}  // namespace lcp::physics
