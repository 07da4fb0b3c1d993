// Learns f and G of a sliding block from velocities, inputs and the slack of known friction forces.
#include "direct/learn.h"
#include "run/error.h"

int main(int argc, char** argv) {
  return lcp::training::guarded("train_slack",
                                [&] { return lcp::training::learn(lcp::nn::DirectForces::kSlack, argc, argv); });
}
