// The charts of an experiment, from its configurations. Pure.
#pragma once

#include <vector>

#include "measure/chart.h"
#include "measure/experiment.h"

namespace septet::measure {

// Throughput against concurrency, a line per configuration, bands where intervals are known.
Chart throughput_chart(const std::vector<ConfigurationRows>& groups, AxisScale x_scale);

// p90 latency against concurrency, a line per configuration. The unit suits the largest value.
Chart latency_chart(const std::vector<ConfigurationRows>& groups, AxisScale x_scale,
                    AxisScale y_scale);

// Best throughput against replicas, a line per technique, and the dashed line that doubling
// replicas doubles throughput, drawn from the fewest replicas of the first technique.
Chart scaling_chart(const std::vector<ConfigurationRows>& groups);

// Whether scaling_chart has a line to draw: some technique was measured with two replica counts.
bool has_scaling(const std::vector<ConfigurationRows>& groups);

}  // namespace septet::measure
