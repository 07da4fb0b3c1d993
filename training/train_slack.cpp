// Learns f and G of a sliding block from velocities, inputs and the slack of known friction forces.
#include "direct/direct.h"
#include "run/error.h"

int main(int argc, char** argv) {
  using namespace lcp::training;
  const auto body = [](int count, const char* const* words) {
    return train_direct_model(lcp::nn::DirectForces::kSlack, count, words);
  };
  run_program("train_slack", body, argc, argv, Processes::kDivided);
}
