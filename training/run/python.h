// What programs have Python do: figures, and models in the form of torch.export.
//
// The interpreter is that which the environment variable TORCHLCP_PYTHON names, else that which the build was
// configured with, else python3 of PATH. Where the variable is set but empty, nothing is run, and nothing said. What
// cannot be made is left out, and a line on stderr says how to make it later.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run/output_folder.h"

namespace lcp::training {

/// Runs the script figures/draw.py for the finished run in `out`. It draws into an UnfinishedFolder, and then
/// out.write() gives each figure its name: a figure that is not drawn leaves its earlier version as it is.
///   names: what the script may draw, such as "rollout.png", for the folder figures/ of the run.
/// Returns the paths of the figures that were drawn. Throws a UsageError where a figure cannot be written.
std::vector<std::filesystem::path> draw_figures(OutputFolder& out, const std::vector<std::string>& names);

/// Writes a model as model.pt and, by a Python with the torch of this build, as model.pt2: the same as a program of
/// torch.export, made of model.pt by python/torchlcp/export.py.
///   torchscript: the content of model.pt.
/// Throws a UsageError where a file cannot be written.
void write_model(OutputFolder& out, const std::string& torchscript);

}  // namespace lcp::training
