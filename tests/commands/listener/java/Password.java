import com.ibm.mq.MQException;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Hashtable;

/** Connects with a user and each of some passwords. Arguments: port, user, passwords. */
public class Password {
  public static void main(String[] arguments) throws Exception {
    for (int i = 2; i < arguments.length; i++) {
      Hashtable<String, Object> properties = new Hashtable<>();
      properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
      properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[0]));
      properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
      properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
      properties.put(CMQC.USER_ID_PROPERTY, arguments[1]);
      properties.put(CMQC.PASSWORD_PROPERTY, arguments[i]);
      try {
        new MQQueueManager("QM1", properties).disconnect();
        System.out.println(arguments[i] + " 0");
      } catch (MQException e) {
        System.out.println(arguments[i] + " " + e.reasonCode);
      }
    }
  }
}
