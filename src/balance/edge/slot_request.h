// What a replica is sent that reads a request's body in a slot of shared memory.
#pragma once

#include "balance/edge/exchange.h"
#include "inference/http1.h"

namespace septet::balance {

// So many bytes stay free at the front of a slot that tensors, which begin so far behind the body's
// beginning, are aligned for vector instructions.
constexpr std::size_t lead_for(std::size_t tensors_at) {
  constexpr std::size_t kTensorAlignment = 64;
  return (kTensorAlignment - tensors_at % kTensorAlignment) % kTensorAlignment;
}

// Fills the exchange's slot and slot_head: its body lies there, `at` bytes behind the beginning of
// the slot. Nothing is filled in when it has to be sent whole all the same.
void put_slot(Exchange& exchange, const inference::HttpHead& head, const Body& slot,
              std::size_t at);

}  // namespace septet::balance
