#include "run/text.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace lcp::training {

std::string short_number(double x, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, x + 0.);  // -0 + 0 = 0
  return text;
}

std::string percentage(double share) {
  const std::string text = short_number(100 * share);
  return (text == "100" && share < 1 ? "over 99.9" : text) + " %";
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

std::string shell_command(const std::vector<std::string>& words) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-+=./:,@%", c);
  };
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) command += c == '\'' ? "'\\''" : std::string(1, c);
    command += '\'';
  }
  return command;
}

std::string resume_command(const std::string& out) {
  return shell_command({program_invocation_name, "--out", out, "--resume"});
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
