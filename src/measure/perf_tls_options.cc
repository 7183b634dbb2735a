#include "measure/perf_tls_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace septet::measure {

namespace {

constexpr std::string_view kHttps = "https://";

Error usage(std::string message, std::string hint = {}) {
  return make_error(ErrorKind::kUsage, std::move(message), std::move(hint));
}

// The first word about TLS of one protocol that was given; empty = none.
std::string_view first_grpc_word(const TlsWords& words) {
  return words.grpc_use_ssl                    ? "--ssl-grpc-use-ssl"
         : words.grpc_root_certifications_file ? "--ssl-grpc-root-certifications-file"
         : words.grpc_private_key_file         ? "--ssl-grpc-private-key-file"
         : words.grpc_certificate_chain_file   ? "--ssl-grpc-certificate-chain-file"
                                               : "";
}

std::string_view first_https_word(const TlsWords& words) {
  return words.https_verify_peer               ? "--ssl-https-verify-peer"
         : words.https_verify_host             ? "--ssl-https-verify-host"
         : words.https_ca_certificates_file    ? "--ssl-https-ca-certificates-file"
         : words.https_client_certificate_file ? "--ssl-https-client-certificate-file"
         : words.https_client_certificate_type ? "--ssl-https-client-certificate-type"
         : words.https_private_key_file        ? "--ssl-https-private-key-file"
         : words.https_private_key_type        ? "--ssl-https-private-key-type"
                                               : "";
}

Result<TlsFileType> read_type(std::string_view option, const std::optional<std::string>& word) {
  const std::string type = to_lower(word.value_or("pem"));
  if (type != "pem" && type != "der") {
    return usage(fmt::format("{} {} is neither PEM nor DER", option, *word));
  }
  return type == "pem" ? TlsFileType::kPem : TlsFileType::kDer;
}

Result<std::optional<TlsOptions>> for_grpc(const TlsWords& words) {
  if (!words.grpc_use_ssl) {
    return usage(fmt::format("{} says nothing without TLS", first_grpc_word(words)),
                 "add --ssl-grpc-use-ssl");
  }
  if (words.grpc_private_key_file.has_value() != words.grpc_certificate_chain_file.has_value()) {
    return usage(
        "--ssl-grpc-private-key-file and --ssl-grpc-certificate-chain-file belong together",
        "give both, or neither when the server asks for no client certificate");
  }
  TlsOptions options;
  options.authorities_file = words.grpc_root_certifications_file.value_or("");
  options.certificate_file = words.grpc_certificate_chain_file.value_or("");
  options.key_file = words.grpc_private_key_file.value_or("");
  return std::optional(options);
}

Result<std::optional<TlsOptions>> for_https(const TlsWords& words) {
  const int peer = words.https_verify_peer.value_or(1);
  const int host = words.https_verify_host.value_or(2);
  if (peer < 0 || peer > 1) {
    return usage(fmt::format("--ssl-https-verify-peer {} is neither 0 nor 1", peer));
  }
  if (host < 0 || host > 2) {
    return usage(fmt::format("--ssl-https-verify-host {} is none of 0, 1 and 2", host));
  }
  const bool about_certificate = words.https_client_certificate_type ||
                                 words.https_private_key_file || words.https_private_key_type;
  if (about_certificate && !words.https_client_certificate_file) {
    return usage("a private key or a type was given, and no certificate of the client",
                 "add --ssl-https-client-certificate-file FILE");
  }
  const auto certificate_type =
      read_type("--ssl-https-client-certificate-type", words.https_client_certificate_type);
  if (!certificate_type.ok()) {
    return certificate_type.error();
  }
  const auto key_type = read_type("--ssl-https-private-key-type", words.https_private_key_type);
  if (!key_type.ok()) {
    return key_type.error();
  }
  TlsOptions options;
  options.verify_peer = peer == 1;
  options.verify_host = host > 0;
  options.authorities_file = words.https_ca_certificates_file.value_or("");
  options.certificate_file = words.https_client_certificate_file.value_or("");
  options.certificate_type = *certificate_type;
  options.key_file = words.https_private_key_file.value_or("");
  options.key_type = *key_type;
  return std::optional(options);
}

}  // namespace

bool is_https(const std::string& url) { return to_lower(url).starts_with(kHttps); }

std::string without_https(const std::string& url) {
  return is_https(url) ? url.substr(kHttps.size()) : url;
}

Result<std::optional<TlsOptions>> tls_options_of(const TlsWords& words,
                                                 const std::vector<std::string>& urls, bool grpc) {
  const auto encrypted = std::count_if(urls.begin(), urls.end(), is_https);
  const std::string_view other = grpc ? first_https_word(words) : first_grpc_word(words);
  if (!other.empty()) {
    return usage(fmt::format("{} is for {}, and {} was asked for", other, grpc ? "HTTP" : "gRPC",
                             grpc ? "gRPC" : "HTTP"),
                 grpc ? "leave it out, or leave out -i grpc" : "leave it out, or add -i grpc");
  }
  if (grpc) {
    if (encrypted > 0) {
      return usage("https:// is for HTTP, and gRPC was asked for",
                   "name gRPC servers as HOST:PORT and add --ssl-grpc-use-ssl");
    }
    return first_grpc_word(words).empty() ? std::optional<TlsOptions>() : for_grpc(words);
  }
  if (encrypted == 0) {
    if (first_https_word(words).empty()) {
      return std::optional<TlsOptions>();
    }
    return usage(fmt::format("{} says nothing of a plain server", first_https_word(words)),
                 "name the server with -u https://HOST:PORT");
  }
  if (encrypted != static_cast<std::ptrdiff_t>(urls.size())) {
    return usage("some servers were named with https:// and others without",
                 "measure plain and encrypted servers in two runs");
  }
  return for_https(words);
}

}  // namespace septet::measure
