// Where an instance goes: which legal spans are free and which of them a driver takes.
#pragma once

#include <optional>
#include <vector>

#include "gpu/types.h"

namespace septet::gpu {

// Whether no taken span overlaps.
bool is_free(const Placement& span, const std::vector<Placement>& taken);

// The legal spans that overlap nothing taken, ascending.
std::vector<Placement> free_spans(const std::vector<Placement>& legal,
                                  const std::vector<Placement>& taken);

// How many of the spans fit side by side: exact for spans of one size.
unsigned count_disjoint(const std::vector<Placement>& spans);

// The free span that leaves the most spans of `all` possible, ties to the lowest start. `all` holds
// every legal span of every profile, duplicates counted.
std::optional<Placement> least_harmful_span(const std::vector<Placement>& legal,
                                            const std::vector<Placement>& taken,
                                            const std::vector<Placement>& all);

// Whether the media engines of the whole GPU suffice for the chosen profiles, as far as is known: a
// variant with all media engines (+me.all) leaves none to the others. Other variants are bounded by
// their maximum count alone; on hardware the driver's remaining capacity has the last word.
bool media_engines_suffice(const std::vector<GpuInstanceProfile>& all,
                           const std::vector<const GpuInstanceProfile*>& chosen);

}  // namespace septet::gpu
