// The description of a step as one text, which operators pass and files of models keep: its kind and its options,
// "rigid dt=0.01 balls=1,8 tolerance=1e-09".
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lcp::ops {

/// The kind of a text.
inline std::string_view kind_in(std::string_view text) { return text.substr(0, text.find(' ')); }

/// Reads a text, which must outlive this object. All functions throw c10::Error, which names the option, where its
/// value does not fit; those without `_if` also where there is none.
class StepText {
 public:
  explicit StepText(std::string_view text) : text_(text) {}

  std::string_view text() const { return text_; }
  std::string_view kind() const { return kind_in(text_); }
  std::optional<std::string_view> word_if(std::string_view name) const;
  std::optional<double> number_if(std::string_view name) const;
  std::optional<std::int64_t> count_if(std::string_view name) const;
  std::string_view word(std::string_view name) const;
  double number(std::string_view name) const;
  std::int64_t count(std::string_view name) const;
  std::vector<std::int64_t> counts(std::string_view name) const;
  std::vector<std::int64_t> counts_if(std::string_view name) const;  ///< none where there is no value
  std::vector<double> numbers_if(std::string_view name) const;       ///< as counts_if

 private:
  std::string_view text_;
};

/// Writes a text. Numbers are written so that the same number is read.
class StepWriter {
 public:
  explicit StepWriter(std::string_view kind) : text_(kind) {}

  StepWriter& add(std::string_view name, std::string_view word);
  StepWriter& add(std::string_view name, double number);
  StepWriter& add(std::string_view name, std::int64_t count);
  StepWriter& add(std::string_view name, c10::ArrayRef<std::int64_t> counts);
  StepWriter& add(std::string_view name, c10::ArrayRef<double> numbers);
  /// Nothing where there is no value.
  template <class T>
  StepWriter& add(std::string_view name, const std::optional<T>& value) {
    return value ? add(name, *value) : *this;
  }

  const std::string& text() const { return text_; }

 private:
  StepWriter& begin(std::string_view name);

  std::string text_;
};

}  // namespace lcp::ops
