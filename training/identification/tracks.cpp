#include "identification/tracks.h"

#include <ATen/ATen.h>

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
  std::vector<std::int64_t> lengths;
  for (const Range& range : ranges) {
    if (range.end - range.first < kShortest) {
      throw UsageError(file + line(range.first) + ": a track of " + std::to_string(range.end - range.first) +
                       " rows; it takes " + std::to_string(kShortest));
    }
    lengths.push_back(static_cast<std::int64_t>(range.end - range.first));
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
  const auto by_track = [&](const Tensor& x) { return at::pad_sequence(x.split_with_sizes(lengths)).contiguous(); };
  const Tensor observed = columns_of(table, positions);
  return {dt, by_track(observed), by_track(at::ones_like(observed.slice(1, 0, 1)))};
}

TrajectoryTable track_table(const Tracks& tracks) {
  return {"track", tracks.steps() + 1, tracks.count(), tracks.seen.squeeze(-1) > 0};
}

}  // namespace lcp::training
