// How connections to a server are encrypted, as perf_analyzer's options say it.
//
// A value type; the files are read when the connections are prepared (edge/client_transport.h).
#pragma once

#include <string>

namespace septet::measure {

enum class TlsFileType { kPem, kDer };

struct TlsOptions {
  bool verify_peer = true;       // the server's certificate must lead to a known authority
  bool verify_host = true;       // and must be for the host that was named
  std::string authorities_file;  // PEM; empty = those of this machine
  // What the client shows of itself; empty = nothing. A missing key is sought in the certificate's
  // file.
  std::string certificate_file;
  TlsFileType certificate_type = TlsFileType::kPem;
  std::string key_file;
  TlsFileType key_type = TlsFileType::kPem;
};

}  // namespace septet::measure
