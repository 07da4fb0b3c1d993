// Compares the motion of a cube with recorded tosses.
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>
#include <vector>

#include "run/command_line.h"
#include "run/error.h"
#include "run/output_folder.h"
#include "run/results.h"
#include "tosses/cube.h"
#include "tosses/judge.h"
#include "tosses/tosses.h"

namespace {

using namespace lcp::training;

int evaluate_tosses(int argc, const char* const* argv) {
  CommandLine line("evaluate_tosses",
                   "Rolls a cube out from measured states of recorded tosses and compares its motion with the\n"
                   "measured one, in three protocols: whole tosses; from the last sample before the cube can touch\n"
                   "the ground; and windows of 80 steps.");
  RunFlags run;
  std::filesystem::path folder;
  double length = 0.0524, rate = 148;
  CubeFlags cube;
  CubeContact contact;
  run.add_to(line);
  line.add<std::filesystem::path>("tosses", folder, "Folder of tosses, .pt or .csv", nullptr, Role::kNoEffect);
  line.add<double>("length-unit", length, "Metres for a unit of length in the files", positive);
  line.add<double>("rate", rate, "Samples per second", positive);
  cube.add_to(line);
  contact.add_to(line);
  line.footer(
      "Example: evaluate_tosses --tosses cube_tosses --gravity 9.58 --side 0.1036 --out runs/tosses\n"
      "A .pt file holds a tensor [1, T, 13 or more] that torch.save wrote, a .csv file these columns: x,y,z (of the\n"
      "centre), q_w,q_x,q_y,q_z, v_x,v_y,v_z, and omega_x,omega_y,omega_z (rad/s, in the axes of the body). The ground "
      "is z = 0.");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (folder.empty()) throw UsageError("--tosses is missing: the folder of tosses to compare with");
  torch::set_num_threads(static_cast<int>(run.threads));
  const std::vector<Toss> tosses = read_tosses(folder, length);
  OutputFolder out(line, run);

  Judgement found = judge(cube.cube(), contact, tosses, cube.side, rate);
  found.metrics["tosses"] = tosses.size();
  out.write_csv("errors.csv", found.errors);
  write_results(out, found.metrics, {"errors.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("evaluate_tosses", [&] { return evaluate_tosses(argc, argv); });
}
