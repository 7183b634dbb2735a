// What the body of an inference request says that decides where it may go.
//
// The rest of the body is none of the proxy's business, so it is searched for a word and taken
// apart only where that occurs.
#pragma once

#include <string>
#include <string_view>

namespace septet::balance {

// The request is one of a sequence: its parameters sequence_id, sequence_start, sequence_end.
struct SequenceWish {
  std::string id;     // a number's digits, or a text in quotes: 7 and "7" are two; empty = none
  std::string model;  // of a message, the one that it names
  bool starts = false;
  bool ends = false;
};

// Of a body in JSON, without the binary tensors behind it. Malformed = none: its replica will say.
SequenceWish read_json_sequence(std::string_view json);
// Of a ModelInferRequest with its prefix of five bytes, which may be cut behind its parameters.
SequenceWish read_proto_sequence(std::string_view framed);

// Whether tensors lie in memory that the client has registered, so that two replicas would write to
// the same. What cannot be read, or is compressed, might say so.
bool json_names_shared_memory(std::string_view json);
bool proto_names_shared_memory(std::string_view framed);

}  // namespace septet::balance
