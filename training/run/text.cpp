#include "run/text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace lcp::training {

std::string short_number(double x, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, x + 0.);  // -0 + 0 = 0
  return text;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (k > 0) text += k + 1 < names.size() ? ", " : " or ";
    text += names[k];
  }
  return text;
}

std::function<std::string(const std::string&)> one_of(std::vector<std::string> names) {
  return [names = std::move(names)](const std::string& x) {
    return std::find(names.begin(), names.end(), x) != names.end() ? "" : listed(names);
  };
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string table_row(const std::vector<std::string>& fields) {
  std::string line = "|";
  for (const std::string& field : fields) line += " " + field + " |";
  return line + "\n";
}

std::string table_head(const std::vector<std::string>& titles) {
  return table_row(titles) + table_row(std::vector<std::string>(titles.size(), "---"));
}

}  // namespace lcp::training
