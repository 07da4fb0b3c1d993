// An arm of seven joints pushes a box to a mark: what its servos aim at is found by gradients through contact.
//
//   python -m torchlcp.convert_robot arm.xml        reads MJCF, and writes arm.json, once
//   arm_pushes arm.json
#include <lcp/physics/robot_file.h>
#include <torch/torch.h>

#include <cmath>
#include <iostream>

int main(int argc, char** argv) {
  namespace physics = lcp::physics;
  if (argc != 2) {
    std::cerr << "arm_pushes ROBOT.json\n";
    return 2;
  }
  const physics::Robot robot = physics::load_robot(argv[1]);
  const physics::RobotJointPlace box = physics::joint(robot, "box");
  const physics::RobotKeyframe& behind = physics::keyframe(robot, "behind");  // the tool, behind the box
  const physics::RobotState& start = behind.state;
  const auto numbers = [](std::vector<double> x) { return torch::tensor(x, torch::kDouble); };
  const torch::Tensor before = behind.control, mark = numbers({0.80, 0.10});  // rad and m
  const int rows = 200;
  // The servos move for half a second, and hold for half a second.
  const torch::Tensor share = (2 * torch::linspace(0, 1, rows, torch::kDouble)).clamp_max(1).unsqueeze(-1);

  torch::Tensor after = numbers({0, 1.193, 0, -1.348, 0, 0.730, 0}).requires_grad_();  // rad, the tool ahead
  torch::optim::Adam optimizer({after}, torch::optim::AdamOptions(0.02));
  for (int iteration = 0; iteration < 200; ++iteration) {
    const torch::Tensor control = before + share * (after - before);
    const physics::RobotSolution rollout = physics::simulate(start, {control, {}}, rows, robot);
    const torch::Tensor end = rollout.next.qpos[-1].narrow(-1, box.qpos, 2);
    const torch::Tensor loss = (end - mark).square().sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    const double miss = 1000 * std::sqrt(loss.item<double>());
    if (iteration % 10 == 0 || miss < 1) {
      std::cout << "iteration " << iteration << ": the box ends " << miss << " mm from the mark\n";
    }
    if (miss < 1) return 0;
  }
  return 1;
}
