// A blocking TLS client and a certificate for the server it talks to. For tests only.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>

#include <string>
#include <string_view>

#include "base/check.h"
#include "os/endpoint.h"

namespace septet::test {

struct Pem {
  std::string certificate;
  std::string key;
};

inline std::string take_text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  ::BIO_free(bio);
  return text;
}

// A self-signed certificate of localhost.
inline Pem make_pem() {
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  X509* certificate = ::X509_new();
  ::X509_set_version(certificate, 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(certificate), 0);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate), 3600);
  ::X509_set_pubkey(certificate, key);
  X509_NAME* const name = ::X509_get_subject_name(certificate);
  ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  ::X509_set_issuer_name(certificate, name);
  CHECK(::X509_sign(certificate, key, ::EVP_sha256()) > 0);
  BIO* to_certificate = ::BIO_new(::BIO_s_mem());
  BIO* to_key = ::BIO_new(::BIO_s_mem());
  ::PEM_write_bio_X509(to_certificate, certificate);
  ::PEM_write_bio_PrivateKey(to_key, key, nullptr, nullptr, 0, nullptr, nullptr);
  ::X509_free(certificate);
  ::EVP_PKEY_free(key);
  return {take_text(to_certificate), take_text(to_key)};
}

// A blocking TLS client.
class TlsClient {
 public:
  // alpn: what it offers, as on the wire; empty = nothing.
  explicit TlsClient(const os::Endpoint& endpoint, const std::string& alpn = {})
      : fd_(os::connect_to(endpoint, 30'000).value()),
        context_(::SSL_CTX_new(::TLS_client_method())),
        ssl_(::SSL_new(context_)) {
    ::SSL_set_fd(ssl_, fd_.get());
    ::SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned>(alpn.size()));
    ::SSL_set_connect_state(ssl_);
  }
  ~TlsClient() {
    ::SSL_free(ssl_);
    ::SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const int sent = ::SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
      if (sent <= 0) {
        wait_for(sent);
        continue;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Reads until so many bytes are there or the server has ended.
  std::string receive(std::size_t size) {
    std::string text;
    while (text.size() < size && !ended_) {
      char buffer[16384];
      const int got = ::SSL_read(ssl_, buffer, sizeof buffer);
      if (got <= 0) {
        wait_for(got);
        continue;
      }
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }
  bool ended() const { return ended_; }
  // What the server chose by ALPN; known after the first bytes have come.
  std::string protocol() const {
    const unsigned char* data = nullptr;
    unsigned size = 0;
    ::SSL_get0_alpn_selected(ssl_, &data, &size);
    return {reinterpret_cast<const char*>(data), size};
  }

 private:
  void wait_for(int result) {
    const int error = ::SSL_get_error(ssl_, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      ended_ = true;
      return;
    }
    pollfd ready{fd_.get(), static_cast<short>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    CHECK(::poll(&ready, 1, 30'000) == 1);
  }

  os::UniqueFd fd_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool ended_ = false;
};

}  // namespace septet::test
