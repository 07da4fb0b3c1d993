// The benchmarks that script/bench runs. Their names are GROUP/WORK/SOLVER; --benchmark_filter selects some of them.
// --problems=DIR writes the problems that the Python benchmarks share, and measures nothing.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <benchmark/benchmark.h>
#include <lcp/version.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "measure.h"

namespace {

// NAME.bin: M, then q, row by row, as doubles; index.csv: name, count, n.
void write_problems(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream index(folder / "index.csv");
  index << "name,count,n\n";
  for (const auto& [name, count] : {std::pair<const char*, std::int64_t>{"definite_3", 8192},
                                    {"sliding_3", 8192},
                                    {"friction_6", 200},
                                    {"friction_24", 200},
                                    {"definite_8", 200},
                                    {"definite_32", 50},
                                    {"definite_128", 5}}) {
    const lcp::bench::ProblemSet& set = lcp::bench::problem_set(name, count);
    std::ofstream stream(folder / (std::string(name) + ".bin"), std::ios::binary);
    for (const at::Tensor& tensor : {set.M, set.q}) {
      stream.write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    }
    index << name << ',' << count << ',' << set.n() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  constexpr std::string_view kProblems = "--problems=";
  if (argc == 2 && std::string_view(argv[1]).starts_with(kProblems)) {
    write_problems(argv[1] + kProblems.size());
    return 0;
  }
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("compiler", TORCHLCP_COMPILER);
  benchmark::AddCustomContext("torchlcp", LCP_VERSION);
  benchmark::AddCustomContext("Siconos", TORCHLCP_SICONOS);
  benchmark::AddCustomContext("Bullet", TORCHLCP_BULLET);
  benchmark::AddCustomContext("libtorch", TORCH_VERSION);
  benchmark::AddCustomContext("vectors", at::get_cpu_capability());
  lcp::bench::add_machine();
  lcp::bench::add_batches();
  lcp::bench::add_contacts();
  lcp::bench::add_friction();
  lcp::bench::add_families();
  lcp::bench::add_curves();
  lcp::bench::add_memory();
  lcp::bench::add_rollouts();
  lcp::bench::add_training_step();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
