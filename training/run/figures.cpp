#include "run/figures.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <system_error>

#include "run/process.h"

namespace lcp::training {
namespace {

constexpr int kNoMatplotlib = 3;  // as style.py exits

std::string python() {
  if (const char* chosen = std::getenv("TORCHLCP_PYTHON")) return chosen;
  return access(TORCHLCP_PYTHON, X_OK) == 0 ? TORCHLCP_PYTHON : "python3";
}

}  // namespace

bool draw_figures(const std::string& program, const std::filesystem::path& out, bool quiet) {
  const auto script = program_folder().parent_path() / "share" / "torchlcp" / "figures" / (program + ".py");
  std::error_code error;
  std::filesystem::remove_all(out / "figures", error);  // an earlier run's are not this one's
  const ProcessResult drawn = run_process({python(), script.string(), out.string()});
  const std::string reason = drawn.last_error();
  if (drawn.status == 0) {
    if (!quiet && !reason.empty()) std::cerr << reason << std::endl;  // what it had to do instead
    return true;
  }
  if (!quiet) {
    std::cerr << "no figures: " << (reason.empty() ? "cannot run " + python() : reason) << "\nto draw them: ";
    if (drawn.status == kNoMatplotlib || drawn.status < 0) std::cerr << python() << " -m pip install matplotlib && ";
    std::cerr << python() << " " << script.string() << " " << out.string() << std::endl;
  }
  return false;
}

}  // namespace lcp::training
