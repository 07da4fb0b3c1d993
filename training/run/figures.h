// Figures, drawn by matplotlib from the files of a run.
#pragma once

#include <filesystem>
#include <string>

namespace lcp::training {

/// Runs figures/<program>.py on the folder `out`, which writes out/figures/*.png. The Python is $TORCHLCP_PYTHON, the
/// one the project was built with, or python3. Without matplotlib nothing is drawn and stderr says how to get it,
/// unless `quiet`. Returns whether figures were drawn.
bool draw_figures(const std::string& program, const std::filesystem::path& out, bool quiet);

}  // namespace lcp::training
