// Package admin is the embedded cluster's HTTP side for operators, and its client: what Kafka's protocol has no request
// for. It serves a group's whole picture, the settings that the drafts of KIP-345 asked for, and the forced rebalance.
//
//	GET  /admin/v1/groups                              the groups, each with its state
//	GET  /admin/v1/groups/{group}                      members, newcomers, settings
//	GET  /admin/v1/groups/{group}/settings
//	PUT  /admin/v1/groups/{group}/settings             replaces them; {} turns everything off
//	PUT  /admin/v1/groups/{group}/expected-instances   replaces the list of expected instance ids alone
//	POST /admin/v1/groups/{group}/force-rebalance      {"deadline": "30s"}; answers when the generation has begun
//
// Bodies and answers are JSON; durations are written "15m". An error is {"error": "…"}, and if the coordinator refuses,
// {"error": "…", "code": 42, "name": "INVALID_REQUEST"} with status 409 (404 for a group that does not exist).
//
// There is no authentication: serve it on the loopback address. A body must be declared as application/json, which no
// page in a browser can do without asking first.
package admin
