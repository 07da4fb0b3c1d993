// Learns [M|W] of a sliding block by soft complementarity and nonnegativity of known forces [Notes, 3.1.3].
#include "rows/train_lcp_rows.h"
#include "run/command_line.h"
#include "run/error.h"

int main(int argc, char** argv) {
  using namespace lcp::training;
  return guarded("train_penalty", [&] {
    CommandLine line(
        "train_penalty",
        "Learns w = M z + W (v, u, 1) of a sliding block, z = (lambda_plus, lambda_minus, gamma), from known\n"
        "forces: their complementarity and w >= 0 are penalised, convex in M and W. Each row may be scaled,\n"
        "and all numbers 0 cost nothing: --hold holds the scale.");
    RowFlags flags{.parameters = lcp::nn::Parameters::kRows};
    return train_lcp_rows(line, flags, argc, argv);
  });
}
