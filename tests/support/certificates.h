// CertificateAuthority: certificates for tests, made on the spot and good for an hour.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

namespace septet::test {

struct Pem {
  std::string certificate;
  std::string key;
};

class CertificateAuthority {
 public:
  CertificateAuthority();
  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  // The authority's own certificate, which clients are told to trust.
  std::string certificate() const;
  // For the name; alternative_names as OpenSSL writes them, "DNS:localhost,IP:127.0.0.1".
  Pem issue(const std::string& name, const std::string& alternative_names = {}) const;

 private:
  X509* certificate_;
  EVP_PKEY* key_;
};

}  // namespace septet::test
