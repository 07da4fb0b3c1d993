#include "run/python.h"

#include <dlfcn.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "lcp/pad.h"
#include "run/error.h"
#include "run/files.h"
#include "run/process.h"
#include "run/process_group.h"
#include "run/text.h"

namespace lcp::training {
namespace {

// Exit statuses of style.py.
constexpr int kNoMatplotlib = 3;
constexpr int kCannotWrite = 4;

constexpr const char* kTorchScript = "model.pt";
constexpr const char* kProgram = "model.pt2";

// The libtorchlcp.so that this program has loaded.
std::string operator_library() {
  Dl_info found{};
  dladdr(reinterpret_cast<void*>(&lcp::unpad), &found);
  return found.dli_fname;
}

// Empty where nothing is to be run; of a group of processes the first one runs it.
std::string python_interpreter() {
  if (!ProcessGroup::current().is_first()) return "";
  if (const char* chosen = std::getenv("TORCHLCP_PYTHON")) return chosen;
  return access(TORCHLCP_PYTHON, X_OK) == 0 ? TORCHLCP_PYTHON : "python3";
}

// A script that is built and installed beside the programs.
std::filesystem::path script_of(const std::string& name) {
  return program_folder().parent_path() / "share" / "torchlcp" / name;
}

}  // namespace

std::vector<std::filesystem::path> draw_figures(OutputFolder& out, const std::vector<std::string>& names) {
  const std::string interpreter = python_interpreter();
  if (interpreter.empty()) return {};
  const auto script = script_of(kFigures + std::string("draw.py"));
  const UnfinishedFolder folder(out.path());
  const ProcessResult drawn = run_process({interpreter, script.string(), out.path().string(), folder.path().string()});
  const std::string reason = drawn.last_error();
  if (drawn.status == kCannotWrite) throw UsageError("cannot write " + (out / kFigures / reason).string());
  if (drawn.status == 0) {
    if (!out.quiet() && !reason.empty())
      std::cerr << reason << std::endl;  // a remark of the script, such as that there is no ffmpeg
    std::vector<std::filesystem::path> figures;
    for (const std::string& name : names) {
      if (!std::filesystem::exists(folder.path() / name)) continue;
      out.write(kFigures + name, read_file(folder.path() / name));
      figures.push_back(out / (kFigures + name));
    }
    if (figures.empty() && !names.empty() && !out.quiet()) {
      std::cerr << "no figures: " << interpreter << " drew none of them" << std::endl;
    }
    return figures;
  }
  if (!out.quiet()) {
    const bool runs = drawn.status >= 0;
    std::cerr << "no figures: " << (reason.empty() ? "cannot run " + interpreter : reason) << "; to draw them"
              << (runs ? "" : " by a Python with matplotlib") << ": ";
    if (drawn.status == kNoMatplotlib) {
      std::cerr << shell_command({interpreter, "-m", "pip", "install", "matplotlib"}) << " && ";
    }
    std::cerr << shell_command({runs ? interpreter : "python3", script.string(), out.path().string(),
                                (out.path() / "").parent_path().string() + "_figures"})
              << std::endl;
  }
  return {};
}

void write_model(OutputFolder& out, const std::string& torchscript) {
  out.write(kTorchScript, torchscript);
  const std::string interpreter = python_interpreter();
  if (interpreter.empty()) return;
  const std::string model = (out / kTorchScript).string(), script = script_of("export.py").string();
  const UnfinishedFolder folder(out.path());
  const auto program = folder.path() / kProgram;
  const ProcessResult exported =
      run_process({interpreter, script, "--library", operator_library(), model, program.string()});
  if (exported.status == 0 && std::filesystem::exists(program)) {
    out.write(kProgram, read_file(program));
  } else if (!out.quiet()) {
    const bool runs = exported.status >= 0;
    const std::string reason = exported.last_error();
    std::cerr << "no " << kProgram << ": "
              << (!runs            ? "cannot run " + interpreter
                  : reason.empty() ? interpreter + " wrote none"
                                   : reason)
              << "; to write it by a Python with torch " << TORCH_VERSION << ": "
              << shell_command({"python3", script, "--library", operator_library(), model,
                                (out.path() / "").parent_path().string() + ".pt2"})
              << std::endl;
  }
}

}  // namespace lcp::training
