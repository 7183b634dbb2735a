// How gRPC's request messages are compressed.
#pragma once

namespace septet::measure {

enum class MessageCompression { kNone, kGzip, kDeflate };

}  // namespace septet::measure
