// The figures of a run, drawn by Python.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/output_folder.h"

namespace lcp::training {

/// Runs the script figures/PROGRAM.py for the finished run in `out`. It draws into an UnfinishedFolder, and then
/// out.write() gives each figure its name: a figure that is not drawn leaves its earlier version as it is. Without
/// Python or matplotlib there are no figures, and a line on stderr says how to draw them later; where
/// python_interpreter() is empty, there is no such line either.
///   names: what the script may draw, such as "rollout.png", for the folder figures/ of the run.
/// Returns the paths of the figures that were drawn. Throws a UsageError where a figure cannot be written.
std::vector<std::filesystem::path> draw_figures(OutputFolder& out, const std::vector<std::string>& names);

}  // namespace lcp::training
