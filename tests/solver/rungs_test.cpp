#include "solver/rungs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace lcp::solver::rungs_test {

TEST(RungsTest, AreThoseOfTheDocumentation) {
  std::ifstream text(LCP_SOURCE_FOLDER "/docs/solvers.md");
  std::string line;
  while (line != "## The ladder") ASSERT_TRUE(std::getline(text, line));
  while (!line.starts_with("|---")) ASSERT_TRUE(std::getline(text, line));
  std::vector<std::string> documented, names;
  while (std::getline(text, line) && line.starts_with("|")) {
    std::string name = line.substr(2, line.find(" |", 2) - 2);
    std::erase(name, '`');
    documented.push_back(name);
  }
  for (const Rung& rung : rungs()) names.emplace_back(rung.name);
  EXPECT_EQ(documented, names);
}

}  // namespace lcp::solver::rungs_test
