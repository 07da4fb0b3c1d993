// The figures of a run, drawn by Python.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/output_folder.h"

namespace lcp::training {

/// Runs the script figures/PROGRAM.py for the finished run in `out`. Without Python or matplotlib there are no figures,
/// and a line on stderr says how to draw them later; where the environment sets TORCHLCP_PYTHON to nothing, there is
/// no such line either. A figure that cannot be drawn leaves the one that was there.
///   names: what the script may write into figures/, such as "rollout.png".
/// Returns the figures that are there now; none where the script failed. Throws a UsageError where a figure cannot be
/// written.
std::vector<std::filesystem::path> draw_figures(OutputFolder& out, const std::vector<std::string>& names);

}  // namespace lcp::training
