import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import com.ibm.mq.headers.MQHeaderIterator;
import com.ibm.mq.headers.MQRFH2;
import java.util.Hashtable;

/** Messages got with MQGMO_CONVERT, in another code page and encoding than those in which they were put. */
public class Convert {
    static MQQueue queue;

    public static void main(String[] arguments) throws Exception {
        Hashtable<String, Object> properties = new Hashtable<>();
        properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
        properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[0]));
        properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
        MQQueueManager manager = new MQQueueManager("QM1", properties);
        queue = manager.accessQueue("TEXTS", CMQC.MQOO_OUTPUT | CMQC.MQOO_INPUT_SHARED);

        MQMessage text = new MQMessage();
        text.characterSet = 1208;
        text.format = CMQC.MQFMT_STRING;
        text.writeString("Grüße");
        queue.put(text);
        MQMessage got = get(500, 273);
        System.out.println(got.characterSet + " " + got.getMessageLength() + " "
                + got.readStringOfByteLength(got.getMessageLength()));

        MQMessage headed = new MQMessage();
        headed.characterSet = 1208;
        headed.encoding = 273;
        headed.format = CMQC.MQFMT_RF_HEADER_2;
        MQRFH2 header = new MQRFH2("psc", "<Topic>ä</Topic>");
        header.setFormat(CMQC.MQFMT_STRING);
        header.setEncoding(273);
        header.setCodedCharSetId(1208);
        header.write(headed);
        headed.writeString("für");
        queue.put(headed);
        got = get(819, 546);
        System.out.print(got.characterSet + " " + got.encoding + " ");
        MQHeaderIterator headers = new MQHeaderIterator(got);
        header = (MQRFH2) headers.nextHeader();
        System.out.println(header.getFolderStrings()[0] + " " + header.getCodedCharSetId() + " " + headers.getBodyAsText());

        text = new MQMessage();
        text.characterSet = 1208;
        text.format = CMQC.MQFMT_STRING;
        text.writeString("βάσις");
        queue.put(text);
        try {
            get(819, 273);
        } catch (MQException error) {
            System.out.println("warning " + error.completionCode + " " + error.reasonCode);
        }
        queue.close();
        manager.disconnect();
        System.out.println("closed");
    }

    static MQMessage get(int ccsid, int encoding) throws MQException {
        MQGetMessageOptions options = new MQGetMessageOptions();
        options.options = CMQC.MQGMO_CONVERT | CMQC.MQGMO_NO_WAIT;
        MQMessage message = new MQMessage();
        message.characterSet = ccsid;
        message.encoding = encoding;
        queue.get(message, options);
        return message;
    }
}
