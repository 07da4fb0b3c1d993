// The figures of a run, drawn by Python.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/output_folder.h"

namespace lcp::training {

/// Runs the script figures/PROGRAM.py for the finished run in `out`. Without Python or matplotlib there are no figures,
/// and a line on stderr says how to draw them later; where the environment variable TORCHLCP_PYTHON is set but
/// empty, there is no such line either. Where a figure cannot be drawn, its earlier version stays.
///   names: what the script may write into figures/, such as "rollout.png".
/// Returns the paths of the figures that exist afterwards; none where the script failed. Throws a UsageError where a
/// figure cannot be written.
std::vector<std::filesystem::path> draw_figures(OutputFolder& out, const std::vector<std::string>& names);

}  // namespace lcp::training
