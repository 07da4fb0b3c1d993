#include "run/figures.h"

#include <iostream>

#include "run/error.h"
#include "run/files.h"
#include "run/process.h"
#include "run/process_group.h"
#include "run/python.h"
#include "run/text.h"

namespace lcp::training {
namespace {

// Exit statuses of style.py.
constexpr int kNoMatplotlib = 3;
constexpr int kCannotWrite = 4;

}  // namespace

std::vector<std::filesystem::path> draw_figures(OutputFolder& out, const std::vector<std::string>& names) {
  const std::string interpreter = python_interpreter();
  if (interpreter.empty() || !ProcessGroup::current().is_first()) return {};
  const auto script = python_script(kFigures + out.program() + ".py");
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

}  // namespace lcp::training
