// SPDX-License-Identifier: Apache-2.0
// The verifier's work on each program stays within what verifier_budget.txt grants it on this kernel line.
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "tests/testkit/data_plane.h"

namespace unpin::testkit {
namespace {

// "6.18" of "6.18.44-whatever".
std::string KernelLine() {
  utsname name = {};
  EXPECT_EQ(uname(&name), 0);
  int major = 0, minor = 0;
  EXPECT_EQ(std::sscanf(name.release, "%d.%d", &major, &minor), 2) << name.release;
  return std::to_string(major) + "." + std::to_string(minor);
}

std::map<std::string, uint32_t> BudgetsOf(const std::string& kernel) {
  std::ifstream file(VERIFIER_BUDGET);
  EXPECT_TRUE(file.good()) << VERIFIER_BUDGET;
  std::map<std::string, uint32_t> budgets;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string of_kernel, program;
    uint32_t budget = 0;
    if (words >> of_kernel >> program >> budget && of_kernel == kernel) budgets[program] = budget;
  }
  return budgets;
}

TEST(VerifierBudget, EachProgramStaysWithinIt) {
  const absl::StatusOr<std::unique_ptr<DataPlane>> plane = DataPlane::Load();
  ASSERT_TRUE(plane.ok()) << plane.status();
  const absl::StatusOr<std::map<std::string, uint32_t>> counts = (*plane)->VerifiedInstructions();
  ASSERT_TRUE(counts.ok()) << counts.status();
  const std::string kernel = KernelLine();
  std::map<std::string, uint32_t> budgets = BudgetsOf(kernel);
  for (const auto& [program, count] : *counts) {
    std::cout << kernel << " " << program << " " << count << " verified instructions\n";
    if (budgets.empty()) continue;
    ASSERT_TRUE(budgets.contains(program)) << program << " has no line in " << VERIFIER_BUDGET;
    EXPECT_LE(count, budgets[program]) << program;
    budgets.erase(program);
  }
  for (const auto& [program, budget] : budgets) ADD_FAILURE() << "no such program: " << program;
}

}  // namespace
}  // namespace unpin::testkit
