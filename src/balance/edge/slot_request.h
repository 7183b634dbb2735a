// What a replica is sent that reads a request's body in a slot of shared memory.
#pragma once

#include "balance/edge/exchange.h"
#include "inference/http1.h"

namespace septet::balance {

// Fills the exchange's slot and slot_head: its body lies there, `at` bytes behind the beginning of
// the slot. Nothing is filled in when it has to be sent whole all the same.
void put_slot(Exchange& exchange, const inference::HttpHead& head, const Body& slot,
              std::size_t at);

}  // namespace septet::balance
