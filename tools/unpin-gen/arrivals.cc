// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/arrivals.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace unpin::gen {
namespace {

constexpr size_t kDefaultConnections = 8;
constexpr char kShapes[] =
    "expected equal, zipf:S (such as zipf:1), or a list of weights (such as 5,3,1)";

absl::Status BadShape(absl::string_view shape, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("rates '", shape, "': ", why, "; ", kShapes));
}

absl::StatusOr<std::vector<double>> ZipfWeights(absl::string_view shape, size_t connections) {
  absl::string_view text = shape;
  double exponent = 0;
  absl::ConsumePrefix(&text, "zipf:");
  if (!absl::SimpleAtod(text, &exponent) || !std::isfinite(exponent) || exponent < 0) {
    return BadShape(shape, absl::StrCat("'", text, "' is not a number of 0 or more"));
  }
  std::vector<double> weights(connections);
  for (size_t i = 0; i < connections; ++i) weights[i] = std::pow(i + 1, -exponent);
  return weights;
}

absl::StatusOr<std::vector<double>> ListedWeights(absl::string_view shape) {
  std::vector<double> weights;
  for (absl::string_view text : absl::StrSplit(shape, ',')) {
    double weight = 0;
    if (!absl::SimpleAtod(text, &weight) || !std::isfinite(weight) || weight < 0) {
      return BadShape(shape, absl::StrCat("'", text, "' is not a number of 0 or more"));
    }
    weights.push_back(weight);
  }
  return weights;
}

absl::StatusOr<std::vector<double>> Weights(const RateOptions& options) {
  const size_t connections = options.connections.value_or(kDefaultConnections);
  if (options.shape == "equal") return std::vector<double>(connections, 1.0);
  if (options.shape.rfind("zipf:", 0) == 0) return ZipfWeights(options.shape, connections);

  absl::StatusOr<std::vector<double>> listed = ListedWeights(options.shape);
  if (listed.ok() && options.connections && *options.connections != listed->size()) {
    return BadShape(options.shape, absl::StrCat("has ", listed->size(), " entries for ",
                                                *options.connections, " connections"));
  }
  return listed;
}

// In [0, 1); spelled out because the standard distributions differ between libraries.
double Fraction(std::mt19937_64& random) { return (random() >> 11) * 0x1.0p-53; }

Duration Seconds(double seconds) { return Duration(std::llround(seconds * 1e9)); }

}  // namespace

absl::StatusOr<std::vector<double>> PlanRates(const RateOptions& options) {
  if (options.connections == 0)
    return absl::InvalidArgumentError("connections: 0 of them send nothing");
  absl::StatusOr<std::vector<double>> rates = Weights(options);
  if (!rates.ok()) return rates;

  const double sum = std::accumulate(rates->begin(), rates->end(), 0.0);
  if (sum <= 0) return BadShape(options.shape, "all of them are 0");
  const bool listed = options.shape != "equal" && options.shape.rfind("zipf:", 0) != 0;
  if (!options.total_rps && listed) return rates;
  const double total = options.total_rps.value_or(100);
  if (!std::isfinite(total) || total <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("rps ", total, ": not a positive number"));
  }
  for (double& rate : *rates) rate *= total / sum;
  return rates;
}

void Shuffle(std::vector<double>& rates, uint32_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = rates.size(); i > 1; --i) std::swap(rates[i - 1], rates[random() % i]);
}

Schedule::Schedule(std::vector<double> rates, Spacing spacing, uint32_t seed)
    : rates_(std::move(rates)), spacing_(spacing), random_(seed) {
  for (size_t i = 0; i < rates_.size(); ++i) {
    if (rates_[i] <= 0) continue;
    const Duration phase = Seconds(i / (rates_[i] * rates_.size()));
    next_.push({spacing_ == Spacing::kPoisson ? Gap(i) : phase, i});
  }
}

Duration Schedule::Gap(size_t connection) {
  const double mean_s = 1 / rates_[connection];
  return Seconds(spacing_ == Spacing::kPoisson ? -std::log1p(-Fraction(random_)) * mean_s : mean_s);
}

Arrival Schedule::Next() {
  const Arrival arrival = next_.top();
  next_.pop();
  next_.push({arrival.at + Gap(arrival.connection), arrival.connection});
  return arrival;
}

}  // namespace unpin::gen
