// Formats numbers, lists and tables as text.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace lcp::training {

/// The number with that many significant digits; zero has no sign.
std::string short_number(double x, int digits = 3);

/// The share in percent, such as "63.2 %"; "0 %" and "100 %" are exact.
std::string percentage(double share);

/// "a, b or c".
std::string listed(const std::vector<std::string>& names);

/// The member `name` of each row of a table.
template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  names.reserve(std::size(rows));
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

/// A check for CommandLine::add: the flag must be one of these names.
std::function<std::string(const std::string&)> one_of(std::vector<std::string> names);

/// The text, filled up with blanks to `width` characters; at least one blank follows it.
std::string padded(std::string text, std::size_t width);

/// The words as one command of a POSIX shell.
std::string shell_command(const std::vector<std::string>& words);

/// The command that continues the run in the folder `out`: this program, by the path with which it was called.
std::string resume_command(const std::string& out);

/// A row of a Markdown table, and the two lines that the table begins with.
std::string table_row(const std::vector<std::string>& fields);
std::string table_head(const std::vector<std::string>& titles);

}  // namespace lcp::training
