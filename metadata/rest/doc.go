// Package rest serves what an application knows about itself over HTTP: which instances, group instance ids, tasks and
// stores there are, the topology, health, metrics, and a page for people.
//
// This package is internal to the project: users reach it through streams.App's Handler or RESTAddr. The paths, the query
// parameters, the JSON field names (wire.go) and the error codes (errors.go) are a promise; the Go names are not.
//
//	GET /                                       a page for people
//	GET /v1/metadata                            StreamsMetadata of every process of the group
//	GET /v1/instances[?scope=group][&format=text]   group members of this process, or of the group; text: one instance id a line
//	GET /v1/threads                             stream threads of this process
//	GET /v1/topology[?format=json]              the topology in Kafka's text form
//	GET /livez                                  503 when a thread is dead or the application has failed
//	GET /readyz                                 200 in RUNNING only
//	GET /metrics                                Prometheus
//
// Errors are JSON: {"error":{"code":"invalid_parameter","message":"…"}}. Only reading is offered, so there is nothing to
// protect but what it tells; the address is loopback unless the application is configured otherwise.
//
// # What is not relied upon
//
// No request reaches a stream thread: threads publish their state, and handlers read what was published. A slow or hostile
// client costs a goroutine of the HTTP server and nothing else. The group coordinator is asked at most once per the
// cache's maximum age, however many requests come; health does not ask it at all.
package rest
