package cluster

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// withoutSecurity answers as a broker does that has neither an authorizer nor SASL. kfake would remember what it is told
// and do nothing with it.
func withoutSecurity(req kmsg.Request) kmsg.Response {
	resp := req.ResponseKind()
	disabled, why := kerr.SecurityDisabled.Code, kmsg.StringPtr("No Authorizer is configured.")
	switch resp := resp.(type) {
	case *kmsg.SASLHandshakeResponse:
		resp.ErrorCode = kerr.IllegalSaslState.Code
	case *kmsg.SASLAuthenticateResponse:
		resp.ErrorCode, resp.ErrorMessage = kerr.IllegalSaslState.Code, kmsg.StringPtr("SASL is not enabled.")
	case *kmsg.DescribeACLsResponse:
		resp.ErrorCode, resp.ErrorMessage = disabled, kmsg.StringPtr("No Authorizer is configured on the broker")
	case *kmsg.CreateACLsResponse:
		for range req.(*kmsg.CreateACLsRequest).Creations {
			resp.Results = append(resp.Results, kmsg.CreateACLsResponseResult{ErrorCode: disabled, ErrorMessage: why})
		}
	case *kmsg.DeleteACLsResponse:
		for range req.(*kmsg.DeleteACLsRequest).Filters {
			resp.Results = append(resp.Results, kmsg.DeleteACLsResponseResult{ErrorCode: disabled, ErrorMessage: why})
		}
	}
	return resp
}
