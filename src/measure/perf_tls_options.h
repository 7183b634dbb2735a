// perf_analyzer's words about TLS as a plan.
//
// Pure. HTTP is encrypted where the URLs begin with https://, gRPC with --ssl-grpc-use-ssl; a word
// that would have no effect is refused by its name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/tls_options.h"

namespace septet::measure {

// The words as given; an option that was not given is empty.
struct TlsWords {
  bool grpc_use_ssl = false;
  std::optional<std::string> grpc_root_certifications_file;
  std::optional<std::string> grpc_private_key_file;
  std::optional<std::string> grpc_certificate_chain_file;
  std::optional<int> https_verify_peer;  // 0 or 1
  std::optional<int> https_verify_host;  // 0, 1 or 2
  std::optional<std::string> https_ca_certificates_file;
  std::optional<std::string> https_client_certificate_file;
  std::optional<std::string> https_client_certificate_type;  // PEM or DER
  std::optional<std::string> https_private_key_file;
  std::optional<std::string> https_private_key_type;  // PEM or DER
};

// Nothing for plain connections; kUsage with what is wrong and how to write it.
Result<std::optional<TlsOptions>> tls_options_of(const TlsWords& words,
                                                 const std::vector<std::string>& urls, bool grpc);

// The URL without the "https://" that it may begin with.
std::string without_https(const std::string& url);
bool is_https(const std::string& url);

}  // namespace septet::measure
