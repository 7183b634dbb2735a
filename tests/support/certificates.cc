#include "support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/check.h"

namespace septet::test {

namespace {

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  ::BIO_free(bio);
  return text;
}

std::string pem_of(X509* certificate) {
  BIO* bio = ::BIO_new(::BIO_s_mem());
  ::PEM_write_bio_X509(bio, certificate);
  return text_of(bio);
}

X509* unsigned_certificate(const std::string& name, EVP_PKEY* key) {
  static long serial = 0;
  X509* certificate = ::X509_new();
  ::X509_set_version(certificate, 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(certificate), ++serial);
  ::X509_gmtime_adj(::X509_getm_notBefore(certificate), -60);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate), 3600);
  ::X509_set_pubkey(certificate, key);
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

void add_extension(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  CHECK(extension != nullptr && ::X509_add_ext(certificate, extension, -1) == 1);
  ::X509_EXTENSION_free(extension);
}

}  // namespace

CertificateAuthority::CertificateAuthority() : certificate_(nullptr), key_(::EVP_EC_gen("P-256")) {
  certificate_ = unsigned_certificate("authority of a test", key_);
  ::X509_set_issuer_name(certificate_, ::X509_get_subject_name(certificate_));
  add_extension(certificate_, NID_basic_constraints, "critical,CA:TRUE");
  CHECK(::X509_sign(certificate_, key_, ::EVP_sha256()) > 0);
}

CertificateAuthority::~CertificateAuthority() {
  ::X509_free(certificate_);
  ::EVP_PKEY_free(key_);
}

std::string CertificateAuthority::certificate() const { return pem_of(certificate_); }

Pem CertificateAuthority::issue(const std::string& name,
                                const std::string& alternative_names) const {
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  X509* certificate = unsigned_certificate(name, key);
  ::X509_set_issuer_name(certificate, ::X509_get_subject_name(certificate_));
  if (!alternative_names.empty()) {
    add_extension(certificate, NID_subject_alt_name, alternative_names);
  }
  CHECK(::X509_sign(certificate, key_, ::EVP_sha256()) > 0);
  BIO* bio = ::BIO_new(::BIO_s_mem());
  ::PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  Pem pem{pem_of(certificate), text_of(bio)};
  ::X509_free(certificate);
  ::EVP_PKEY_free(key);
  return pem;
}

}  // namespace septet::test
