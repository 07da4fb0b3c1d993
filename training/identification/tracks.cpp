#include "identification/tracks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr double kEqual = 1e-3;       // time steps may differ by this part of a step
constexpr std::size_t kShortest = 3;  // observations that a track must have

struct Range {
  std::size_t first, end;
};

std::vector<Range> tracks_of(const Table& table) {
  const std::vector<double>& time = table["time"];
  const std::vector<double>& name = table.has("track") ? table["track"] : time;
  std::vector<Range> ranges;
  for (std::size_t k = 0; k < time.size(); ++k) {
    const bool begins = k == 0 || (table.has("track") ? name[k] != name[k - 1] : time[k] < time[k - 1]);
    if (begins) ranges.push_back({k, k});
    ranges.back().end = k + 1;
  }
  return ranges;
}

std::string line(std::size_t row) { return ", line " + std::to_string(row + 2); }

}  // namespace

Tracks read_tracks(const std::string& file, const std::vector<std::string>& positions) {
  std::vector<std::string> columns = {"time"};
  columns.insert(columns.end(), positions.begin(), positions.end());
  const Table table = read_csv(file, columns, {"track"});
  const std::vector<double>& time = table["time"];
  const std::vector<Range> ranges = tracks_of(table);
  std::size_t longest = 0;
  for (const Range& range : ranges) {
    if (range.end - range.first < kShortest) {
      throw UsageError(file + line(range.first) + ": a track of " + std::to_string(range.end - range.first) +
                       " rows; it takes " + std::to_string(kShortest));
    }
    longest = std::max(longest, range.end - range.first);
  }
  const double dt = time[1] - time[0];
  for (const Range& range : ranges) {
    for (std::size_t k = range.first + 1; k < range.end; ++k) {
      if (!(dt > 0) || std::abs(time[k] - time[k - 1] - dt) > kEqual * dt) {
        throw UsageError(file + line(k) + ", column \"time\": a step of " + short_number(time[k] - time[k - 1]) +
                         " s; all must be equal, as the first of " + short_number(dt) + " s");
      }
    }
  }
  const auto steps = static_cast<std::int64_t>(longest), count = static_cast<std::int64_t>(ranges.size());
  const auto width = static_cast<std::int64_t>(positions.size());
  Tracks tracks{dt, at::zeros({steps, count, width}, at::kDouble), at::zeros({steps, count, 1}, at::kDouble)};
  for (std::int64_t b = 0; b < count; ++b) {
    const auto [first, end] = ranges[static_cast<std::size_t>(b)];
    const auto length = static_cast<std::int64_t>(end - first);
    tracks.seen.select(1, b).slice(0, 0, length).fill_(1);
    for (std::int64_t c = 0; c < width; ++c) {
      const std::vector<double>& all = table[positions[static_cast<std::size_t>(c)]];
      const std::vector<double> values(all.begin() + static_cast<std::ptrdiff_t>(first),
                                       all.begin() + static_cast<std::ptrdiff_t>(end));
      tracks.observed.select(1, b).select(1, c).slice(0, 0, length).copy_(at::tensor(values, at::kDouble));
    }
  }
  return tracks;
}

void add_column(Table& table, const std::string& name, const Tracks& tracks, const Tensor& x) {
  const auto by_track = [&](const Tensor& y) { return y.expand({tracks.steps() + 1, tracks.count()}).t().flatten(); };
  table.add(name, entries_of(by_track(x).masked_select(by_track(tracks.seen.squeeze(-1)) > 0)));
}

}  // namespace lcp::training
