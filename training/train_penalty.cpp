// Learns [M|W] of a sliding block by penalising where known forces violate complementarity or w >= 0 [Notes, 3.1.3].
#include "rows/train_lcp_rows.h"
#include "run/program.h"

namespace {

using namespace lcp::training;

int train_penalty(int argc, const char* const* argv) {
  CommandLine line(
      "train_penalty",
      "Learns w = M z + W (v, u, 1) of a sliding block, z = (lambda_plus, lambda_minus, gamma), from known\n"
      "forces, by penalties on z_i w_i != 0 and w_i < 0, which are convex in M and W. They do not determine the\n"
      "scale of a row, and M = W = 0 has no loss: --hold fixes the scale.");
  RowFlags flags{.parameters = lcp::nn::Parameters::kRows};
  return train_lcp_rows(line, flags, argc, argv);
}

}  // namespace

int main(int argc, char** argv) { run_program("train_penalty", train_penalty, argc, argv, Processes::kDivided); }
