#include "run/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

namespace lcp::training {

using std::chrono::steady_clock;

namespace {

// "48 s", "3 min 5 s", "2 h 10 min".
std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

}  // namespace

Progress::Progress(std::string unit, std::int64_t first, std::int64_t total, bool quiet,
                   std::chrono::milliseconds patience)
    : unit_(std::move(unit)),
      first_(first),
      total_(total),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      patience_(patience),
      start_(steady_clock::now()) {}

Progress::~Progress() {
  if (shown_ && terminal_) std::cerr << std::endl;
}

void Progress::show(std::int64_t done, const std::string& figures) {
  if (quiet_ || done < reached_) return;
  reached_ = done;
  const auto now = steady_clock::now();
  if (now - start_ < patience_) return;
  const bool last = done == total_;
  if (terminal_) {
    if (!last && shown_ && now - last_ < std::chrono::milliseconds(100)) return;
  } else {
    const std::int64_t tenth = 10 * done / std::max<std::int64_t>(total_, 1);
    if (tenth == last_tenth_) return;
    last_tenth_ = tenth;
  }
  last_ = now;
  shown_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::string line = unit_ + " " + std::to_string(done) + " of " + std::to_string(total_) + "  " + figures;
  if (done > first_ && !last) {
    line +=
        "  " + duration(elapsed * static_cast<double>(total_ - done) / static_cast<double>(done - first_)) + " left";
  }
  if (terminal_) {
    std::cerr << "\r\033[K" << line << std::flush;
  } else {
    std::cerr << line << std::endl;
  }
}

}  // namespace lcp::training
