#include "run/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "run/error.h"

namespace lcp::training {
namespace {

constexpr std::string_view kUnfinishedPrefix = ".torchlcp-";

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw UsageError("cannot write " + path.string() + ": " + std::strerror(errno));
}

// Creates a new file with an unfinished name. Returns its descriptor, or -1 with errno.
int create_unfinished(const std::filesystem::path& folder, std::filesystem::path& created) {
  while (true) {
    created = unfinished_path(folder);
    const int file = open(created.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
}

bool write_all(int file, const std::string& content) {
  for (std::size_t written = 0; written < content.size();) {
    const ssize_t count = write(file, content.data() + written, content.size() - written);
    if (count < 0 && errno != EINTR) return false;
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return fsync(file) == 0;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    std::string_view field = trimmed(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
    fields.push_back(field);
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::string place(const std::filesystem::path& path, std::size_t line) {
  return path.string() + ", line " + std::to_string(line);
}

// Removes the digits that the text begins with. Returns whether there were any.
bool remove_digits(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

}  // namespace

std::filesystem::path unfinished_path(const std::filesystem::path& folder) {
  static std::atomic<std::uint64_t> count{0};
  return folder / (std::string(kUnfinishedPrefix) + std::to_string(getpid()) + "-" + std::to_string(count++));
}

bool is_unfinished(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  std::string_view rest = name;
  if (!rest.starts_with(kUnfinishedPrefix)) return false;
  rest.remove_prefix(kUnfinishedPrefix.size());
  if (!remove_digits(rest) || !rest.starts_with('-')) return false;
  rest.remove_prefix(1);
  return remove_digits(rest) && rest.empty();
}

UnfinishedFile::UnfinishedFile(std::filesystem::path path, const std::string& content,
                               const std::filesystem::path& folder)
    : path_(std::move(path)) {
  const int file = create_unfinished(folder, unfinished_);
  if (file < 0) fail(path_);
  const bool written = write_all(file, content);
  int reason = errno;
  if (close(file) == 0 && written) return;
  if (written) reason = errno;
  unlink(unfinished_.c_str());
  errno = reason;
  fail(path_);
}

UnfinishedFile::~UnfinishedFile() {
  if (!unfinished_.empty()) unlink(unfinished_.c_str());
}

void UnfinishedFile::finish() {
  if (rename(unfinished_.c_str(), path_.c_str()) != 0) fail(path_);
  unfinished_.clear();
}

UnfinishedFolder::UnfinishedFolder(const std::filesystem::path& folder) {
  do {
    path_ = unfinished_path(folder);
    if (mkdir(path_.c_str(), 0777) == 0) return;
  } while (errno == EEXIST);
  throw UsageError("cannot create a folder in " + folder.string() + ": " + std::strerror(errno));
}

UnfinishedFolder::~UnfinishedFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::uint64_t hash_of(std::string_view bytes, std::uint64_t hash) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw UsageError(path.string() + ": is a folder, not a file");
  std::string content;
  std::array<char, 1 << 16> buffer{};
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  bool read = file != nullptr;
  while (read && std::feof(file) == 0) {
    content.append(buffer.data(), std::fread(buffer.data(), 1, buffer.size(), file));
    read = std::ferror(file) == 0;
  }
  const int reason = errno;
  if (file) std::fclose(file);
  if (!read) throw UsageError("cannot read " + path.string() + ": " + std::strerror(reason));
  return content;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  try {
    nlohmann::json json = nlohmann::json::parse(read_file(path));
    if (!json.is_object()) throw UsageError(path.string() + ": must hold one JSON object");
    return json;
  } catch (const nlohmann::json::parse_error& error) {
    throw UsageError(path.string() + ": no JSON at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    throw UsageError(path.string() + ": holds a number that is too large");
  }
}

void Table::add(const std::string& name, std::vector<double> values) {
  names.push_back(name);
  columns.push_back(std::move(values));
}

void Table::add_row(const std::vector<double>& values) {
  columns.resize(names.size());
  for (std::size_t k = 0; k < columns.size(); ++k) columns[k].push_back(values.at(k));
}

bool Table::has(const std::string& name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

const std::vector<double>& Table::operator[](const std::string& name) const {
  return columns.at(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()));
}

std::string csv_text(const Table& table) {
  std::string text;
  for (const std::string& name : table.names) {
    if (!text.empty()) text += ',';
    text += name;
  }
  text += '\n';
  char number[32];
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t k = 0; k < table.columns.size(); ++k) {
      if (k) text += ',';
      const auto end =
          std::to_chars(number, number + sizeof number, table.columns[k][row], std::chars_format::general, 17);
      text.append(number, end.ptr);
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> csv_columns(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  std::string_view line = std::string_view(content).substr(0, content.find('\n'));
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  const std::vector<std::string_view> names = split(trimmed(line));
  return {names.begin(), names.end()};
}

Table read_csv(const std::filesystem::path& path, const std::vector<std::string>& required,
               const std::vector<std::string>& optional) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  std::size_t line_number = 0;
  const auto next_line = [&] {
    const std::size_t end = rest.find('\n');
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++line_number;
    return line;
  };

  const std::vector<std::string_view> header = split(next_line());
  Table table;
  std::vector<std::size_t> fields;
  const auto take = [&](const std::string& name, bool needed) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) {
      if (!needed) return;
      std::string all;
      for (const auto& column : header) all.append(all.empty() ? "" : ",").append(column);
      throw UsageError(path.string() + ": has no column \"" + name + "\"; its header is \"" + all.substr(0, 200) +
                       "\"");
    }
    if (std::find(found + 1, header.end(), name) != header.end()) {
      throw UsageError(path.string() + ": column \"" + name + "\" appears twice");
    }
    table.add(name, {});
    fields.push_back(static_cast<std::size_t>(found - header.begin()));
  };
  for (const std::string& name : required) take(name, true);
  for (const std::string& name : optional) take(name, false);

  while (!rest.empty()) {
    const std::string_view line = next_line();
    if (line.empty()) continue;
    const std::vector<std::string_view> row = split(line);
    if (row.size() != header.size()) {
      throw UsageError(place(path, line_number) + ": has " + std::to_string(row.size()) + " fields, the header " +
                       std::to_string(header.size()));
    }
    for (std::size_t k = 0; k < fields.size(); ++k) {
      std::string_view text = row[fields[k]];
      const std::string_view shown = text;
      if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
      double value = 0;
      const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
      if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !std::isfinite(value)) {
        throw UsageError(place(path, line_number) + ", column \"" + table.names[k] + "\": \"" + std::string(shown) +
                         "\" is no finite number");
      }
      table.columns[k].push_back(value);
    }
  }
  if (table.rows() == 0) throw UsageError(path.string() + ": has no rows");
  return table;
}

}  // namespace lcp::training
