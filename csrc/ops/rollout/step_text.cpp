#include "ops/rollout/step_text.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <system_error>

namespace lcp::ops {
namespace {

template <class T>
T read(std::string_view name, std::string_view word) {
  T value = {};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  TORCH_CHECK(error == std::errc() && end == word.data() + word.size(), "the ", name,
              " of a step must be a number; got ", word);
  return value;
}

template <class T>
void write(std::string& text, T value) {
  char buffer[32];
  text.append(buffer, std::to_chars(std::begin(buffer), std::end(buffer), value).ptr);
}

template <class T>
std::vector<T> read_list(std::string_view name, std::string_view rest) {
  std::vector<T> all;
  while (!rest.empty()) {
    const std::string_view first = rest.substr(0, rest.find(','));
    all.push_back(read<T>(name, first));
    rest.remove_prefix(std::min(rest.size(), first.size() + 1));
  }
  return all;
}

template <class T>
void write(std::string& text, c10::ArrayRef<T> values) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (k > 0) text.append(1, ',');
    write(text, values[k]);
  }
}

template <class T>
T required(std::string_view name, const std::optional<T>& value) {
  TORCH_CHECK(value, "the step has no ", name);
  return *value;
}

}  // namespace

std::optional<std::string_view> StepText::word_if(std::string_view name) const {
  for (std::size_t at = text_.find(' '); at != std::string_view::npos; at = text_.find(' ', at + 1)) {
    const std::string_view rest = text_.substr(at + 1);
    if (!rest.starts_with(name) || rest.size() <= name.size() || rest[name.size()] != '=') continue;
    const std::string_view value = rest.substr(name.size() + 1);
    return value.substr(0, value.find(' '));
  }
  return std::nullopt;
}

std::optional<double> StepText::number_if(std::string_view name) const {
  const auto word = word_if(name);
  return word ? std::optional(read<double>(name, *word)) : std::nullopt;
}

std::optional<std::int64_t> StepText::count_if(std::string_view name) const {
  const auto word = word_if(name);
  return word ? std::optional(read<std::int64_t>(name, *word)) : std::nullopt;
}

std::string_view StepText::word(std::string_view name) const { return required(name, word_if(name)); }
double StepText::number(std::string_view name) const { return required(name, number_if(name)); }
std::int64_t StepText::count(std::string_view name) const { return required(name, count_if(name)); }

std::vector<std::int64_t> StepText::counts(std::string_view name) const {
  return read_list<std::int64_t>(name, word(name));
}

std::vector<std::int64_t> StepText::counts_if(std::string_view name) const {
  return read_list<std::int64_t>(name, word_if(name).value_or(""));
}

std::vector<double> StepText::numbers_if(std::string_view name) const {
  return read_list<double>(name, word_if(name).value_or(""));
}

StepWriter& StepWriter::begin(std::string_view name) {
  text_.append(1, ' ').append(name).append(1, '=');
  return *this;
}

StepWriter& StepWriter::add(std::string_view name, std::string_view word) {
  TORCH_CHECK(word.find(' ') == std::string_view::npos, "the ", name, " of a step must have no space; got ", word);
  begin(name).text_.append(word);
  return *this;
}

StepWriter& StepWriter::add(std::string_view name, double number) {
  write(begin(name).text_, number);
  return *this;
}

StepWriter& StepWriter::add(std::string_view name, std::int64_t count) {
  write(begin(name).text_, count);
  return *this;
}

StepWriter& StepWriter::add(std::string_view name, c10::ArrayRef<std::int64_t> counts) {
  write(begin(name).text_, counts);
  return *this;
}

StepWriter& StepWriter::add(std::string_view name, c10::ArrayRef<double> numbers) {
  write(begin(name).text_, numbers);
  return *this;
}

}  // namespace lcp::ops
