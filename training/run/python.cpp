#include "run/python.h"

#include <unistd.h>

#include <cstdlib>

#include "run/process.h"

namespace lcp::training {

std::string python_interpreter() {
  if (const char* chosen = std::getenv("TORCHLCP_PYTHON")) return chosen;
  return access(TORCHLCP_PYTHON, X_OK) == 0 ? TORCHLCP_PYTHON : "python3";
}

std::filesystem::path python_script(const std::string& name) {
  return program_folder().parent_path() / "share" / "torchlcp" / name;
}

}  // namespace lcp::training
