// Compares the motion of a cube with recorded tosses.
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/program.h"
#include "tosses/body.h"
#include "tosses/cube.h"
#include "tosses/cube_model.h"
#include "tosses/judge.h"
#include "tosses/script_model.h"
#include "tosses/tosses.h"

namespace {

using namespace lcp::training;

int evaluate_tosses(int argc, const char* const* argv) {
  CommandLine line(
      "evaluate_tosses",
      "Rolls a cube, or a learned model, out from measured states of recorded tosses and compares its motion with the\n"
      "measured one, in three protocols: whole tosses; from the last sample before the cube can touch\n"
      "the ground; and windows of 80 steps.");
  RunFlags run;
  std::filesystem::path folder, file, body;
  double length = 0, rate = 148, measured_side = CubeFlags().side;
  CubeFlags cube;
  CubeContact contact;
  run.add_to(line, Precision::kFloat64);
  line.add("tosses", folder, "Folder of tosses, .pt or .csv", nullptr, Role::kFolder);
  line.add("length-unit", length, kLengthUnitHelp, nonnegative);
  line.add("measured-side", measured_side,
           "Side of the cube that was tossed, m: the unit of errors, and what penetrates the ground", positive);
  line.add("body", body, "JSON file of the body that was tossed, of --model, if it is no cube; see docs/tosses.md",
           nullptr, Role::kFile);
  line.add("rate", rate, "Samples per second", positive);
  line.add("model", file,
           "model.pt of train_tosses, or a TorchScript file like it; without it the cube of the "
           "flags below",
           nullptr, Role::kFile);
  cube.add_to(line);
  contact.add_to(line);
  line.footer(
      "Examples: evaluate_tosses --tosses cube_tosses --gravity 9.58 --side 0.1026 --out runs/tosses\n"
      "          evaluate_tosses --tosses cube_tosses --model runs/cube/model.pt --out runs/learned\n"
      "A .pt file holds a tensor [1, T, 13 or more] that torch.save wrote, a .csv file these columns: x,y,z (of the\n"
      "centre), q_w,q_x,q_y,q_z, v_x,v_y,v_z, and omega_x,omega_y,omega_z (rad/s, in the axes of the body). The ground "
      "is z = 0.");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (folder.empty()) throw UsageError("--tosses is missing: the folder of tosses to compare with");
  if (!body.empty()) {
    if (file.empty()) throw UsageError("--body needs --model");
    line.exclude({"measured-side"}, "--body");
  }
  if (file.empty()) {
    contact.exclude_unused(line);
  } else {
    line.exclude({std::begin(CubeFlags::kFlags), std::end(CubeFlags::kFlags)}, "--model");
    line.exclude({std::begin(CubeContact::kFlags), std::end(CubeContact::kFlags)}, "--model");
  }
  torch::set_num_threads(static_cast<int>(run.threads));
  const BodyForm form = body.empty() ? BodyForm(measured_side) : read_body(body).form;
  const std::vector<Toss> tosses = read_tosses(folder, length);
  std::unique_ptr<TossModel> model;
  if (file.empty()) {
    model = std::make_unique<CubeModel>(cube.cube(), contact, rate, std::vector<std::string>());
  } else {
    auto script = std::make_unique<ScriptModel>(file);
    if (script->rate() != rate) {
      throw UsageError("--rate is " + short_number(rate) + ", but " + file.string() + " steps " +
                       short_number(script->rate()) + " times a second");
    }
    cube.gravity = script->gravity();
    model = std::move(script);
  }
  OutputFolder out(line, run);

  Judgement found = judge(*model, tosses, form, cube.gravity, rate);
  found.metrics["tosses"] = tosses.size();
  out.write_csv("errors.csv", found.errors);
  out.write_csv("errors_in_time.csv", found.errors_in_time);
  if (!run.quiet) std::cout << summary_text(found.metrics);
  write_results(out, found.metrics, {"errors.png", "errors_in_time.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { lcp::training::run_program("evaluate_tosses", evaluate_tosses, argc, argv); }
