// Numbers, choices and tables in words.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lcp::training {

/// So many significant digits, and no sign of a zero.
std::string short_number(double x, int digits = 3);

/// "a, b or c".
std::string listed(const std::vector<std::string>& names);

/// What a flag must be that is none of these, for CommandLine::add.
std::function<std::string(const std::string&)> one_of(std::vector<std::string> names);

/// The text and as many blanks as make `width` characters, at least one.
std::string padded(std::string text, std::size_t width);

/// Of a Markdown table: a line, and the two that it begins with.
std::string table_row(const std::vector<std::string>& fields);
std::string table_head(const std::vector<std::string>& titles);

}  // namespace lcp::training
