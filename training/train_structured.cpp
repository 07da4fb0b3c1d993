// Learns M = phi phi' + a symmetric basis + an antisymmetric part, and W, of a sliding block [Notes, 3.1.3].
#include "rows/train_lcp_rows.h"
#include "run/program.h"

namespace {

using namespace lcp::training;

int train_structured(int argc, const char* const* argv) {
  CommandLine line(
      "train_structured",
      "Learns w = M z + W (v, u, 1) of a sliding block, z = (lambda_plus, lambda_minus, gamma), from known\n"
      "forces, with M = phi phi' + sum alpha_i^2 S_i + sum beta_i A_i: a symmetric part that is positive\n"
      "semidefinite or nonnegative, and an antisymmetric one. --basis none and diagonal make only LCPs\n"
      "that have a solution wherever they are feasible. Entries named by --hold are pulled to their values by a "
      "penalty.");
  RowFlags flags{.parameters = lcp::nn::Parameters::kStructured,
                 .training = {.iterations = 4000, .learning_rate = 0.1}};
  return train_lcp_rows(line, flags, argc, argv);
}

}  // namespace

int main(int argc, char** argv) { run_program("train_structured", train_structured, argc, argv, Processes::kDivided); }
