// Package clientconfig reads the client properties of Apache Kafka, as its own tools take them with --command-config, and
// makes connection settings of them: TLS with PEM or PKCS12 stores, SASL with PLAIN or SCRAM, timeouts.
//
// Names and meanings are Kafka's. Properties that have no effect here are told in notes, as Kafka logs those that it does not
// know; whatever would make the connection less safe than the file says is an error. Neither errors nor notes have values of
// secrets in them.
package clientconfig
