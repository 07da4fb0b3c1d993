// Compares the motion of a cube with recorded tosses.
#include <ATen/TensorIndexing.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "run/command_line.h"
#include "run/error.h"
#include "run/output_folder.h"
#include "run/results.h"
#include "run/text.h"
#include "tosses/cube.h"
#include "tosses/protocols.h"
#include "tosses/tosses.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

constexpr std::int64_t kWindow = 80, kStride = 40;

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

  const torch::NoGradGuard no_grad;
  const Cube model = cube.cube();
  nlohmann::json metrics = {{"tosses", tosses.size()}};
  std::int64_t unsolved = 0;
  Table table{{"protocol", "position_error_m", "rotation_error_rad", "penetration_m"}, {{}, {}, {}, {}}};
  const auto add = [&](double number, const std::string& name, const Segments& measured) {
    if (measured.count() == 0) return;  // no toss is long enough
    const auto rolled = roll_out(model, contact, 1 / rate, measured.start, measured.longest());
    const Tensor solved = (rolled.status == 0).all(0);
    const Segments judged = measured.at(solved.nonzero().squeeze(-1));
    const auto of_judged = [&](const Tensor& x) { return x.squeeze(-2).index({at::indexing::Slice(), solved}); };
    const TossErrors errors =
        errors_of(judged, of_judged(rolled.next.position), of_judged(rolled.next.orientation), cube.side);
    metrics[name] = summary_of(errors, cube.side);
    metrics[name]["pieces"] = measured.count();
    unsolved += measured.count() - judged.count();
    for (std::int64_t k = 0; k < judged.count(); ++k) {
      const auto entry = [&](const Tensor& x) { return x[k].item<double>(); };
      table.add_row({number, entry(errors.position), entry(errors.rotation), entry(errors.penetration)});
    }
  };
  add(0, "whole", whole_tosses(tosses));
  add(1, "from_first_contact", from_first_contact(tosses, cube.side, cube.gravity, rate));
  add(2, "windows_80", windows(tosses, kWindow, kStride));
  metrics["unsolved"] = unsolved;
  out.write_csv("errors.csv", table);
  write_results(out, metrics, {"errors.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("evaluate_tosses", [&] { return evaluate_tosses(argc, argv); });
}
